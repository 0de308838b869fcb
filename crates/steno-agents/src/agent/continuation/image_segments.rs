//! Finds the images that a text names. Entries describe an image by type, size and hash, on a line of its own.

/// Finds an image by the BLAKE3 hash of its bytes.
pub type ImageLookup<'a> = &'a dyn Fn(&str) -> Option<ContinuedImage>;

/// An image of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinuedImage {
    /// Its media type.
    pub media_type: String,
    /// Its bytes in base64.
    pub base64: String,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImageSegment {
    /// Text between images.
    Text(String),
    /// An image.
    Image(ContinuedImage),
}

impl ContinuedImage {
    /// The image as a `data:` URL.
    pub(crate) fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.base64)
    }
}

/// Splits a text into images and the text between them.
///
/// A reader joins the segments with newlines, which gives the text back. A text whose segments could not be joined so,
/// such as one with an empty line before an image, stays whole.
pub(crate) fn split_images(text: &str, images: ImageLookup<'_>) -> Vec<ImageSegment> {
    let mut segments: Vec<ImageSegment> = Vec::new();
    for line in text.split('\n') {
        match (image_hash(line).and_then(images), segments.last_mut()) {
            (Some(image), _) => segments.push(ImageSegment::Image(image)),
            (None, Some(ImageSegment::Text(before))) => {
                before.push('\n');
                before.push_str(line);
            }
            (None, _) => segments.push(ImageSegment::Text(line.to_owned())),
        }
    }
    let is_blank = |segment: &ImageSegment| matches!(segment, ImageSegment::Text(text) if text.trim().is_empty());
    if segments.iter().any(is_blank) {
        return vec![ImageSegment::Text(text.to_owned())];
    }
    segments
}

/// Puts each reference to an image at the end of a line on a line of its own: some readers write a file name before it.
pub(super) fn separate_image_references(text: &str) -> String {
    if !text.contains(" bytes, blake3 ") {
        return text.to_owned();
    }
    let lines = text.split('\n').map(|line| match line.rfind(" [image/") {
        Some(at) if is_image_reference(&line[at + 1..]) => {
            format!("{}\n{}", &line[..at], &line[at + 1..])
        }
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether a line is a reference to an image.
pub(super) fn is_image_reference(line: &str) -> bool {
    image_hash(line).is_some()
}

/// The hash in a line such as `[image/png, 12 bytes, blake3 HEX]`.
fn image_hash(line: &str) -> Option<&str> {
    let inner = line.strip_prefix("[image/")?.strip_suffix(']')?;
    let (_, hash) = inner.split_once(" bytes, blake3 ")?;
    (hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoding::attachment;

    fn any_image(_: &str) -> Option<ContinuedImage> {
        Some(ContinuedImage { media_type: "image/png".to_owned(), base64: "aGVsbG8=".to_owned() })
    }

    #[test]
    fn segments_join_to_the_text() {
        let image = attachment::describe_base64(Some("image/png"), "aGVsbG8=");
        let text = format!("see\nthis\n{image}\nand\n{image}");
        let segments = split_images(&text, &any_image);
        let lines: Vec<_> = segments
            .iter()
            .map(|segment| match segment {
                ImageSegment::Text(text) => text.clone(),
                ImageSegment::Image(found) => attachment::describe_url("", &found.data_url()),
            })
            .collect();
        assert_eq!((segments.len(), lines.join("\n")), (4, text));
        for whole in [format!("a\n\n{image}x"), format!("\n{image}"), "plain".to_owned()] {
            assert_eq!(split_images(&whole, &any_image), [ImageSegment::Text(whole.clone())]);
        }
        let unknown = split_images(&image, &|_| None);
        assert_eq!(unknown, [ImageSegment::Text(image.clone())]);
    }

    #[test]
    fn a_file_name_before_an_image_is_a_line_of_its_own() {
        let image = attachment::describe_base64(Some("image/png"), "aGVsbG8=");
        let separated = separate_image_references(&format!("x\nshot.png {image}"));
        assert_eq!(separated, format!("x\nshot.png\n{image}"));
        assert_eq!(separate_image_references(&separated), separated);
        assert_eq!(separate_image_references("a [image/png]"), "a [image/png]");
    }
}
