// @ts-check
// Highlights visible code. One scanner for all languages: comments, strings, numbers and common keywords.

const WORDS = new Set(
  ("abstract and as assert async await bool break case catch class const continue crate def default defer del do " +
    "dyn elif else enum esac except export extends extern false fi final finally float fn for from func function go " +
    "global if impl implements import in instanceof int interface is lambda let local loop match mod module move mut " +
    "namespace new nil none None not null of or package pass private protected pub public raise ref require return " +
    "select self Self static struct super switch then this throw trait true True False try type typeof undefined " +
    "union unsafe use using var void where while with yield SELECT FROM WHERE INSERT UPDATE DELETE CREATE TABLE JOIN " +
    "echo cd export source").split(" "),
);

/** Languages with # comments. */
const HASH = /^(sh|bash|shell|zsh|console|python|py|ruby|rb|yaml|yml|toml|perl|r|make|makefile|dockerfile|conf|ini)$/;
const DASHES = /^(sql|lua|haskell|hs|ada)$/;
const PLAIN = /^(text|txt|plain|markdown|md|diff|csv|log)?$/;

/** @param {string} language */
function scanner(language) {
  const comment = HASH.test(language) ? "#[^\\n]*" : DASHES.test(language) ? "--[^\\n]*" : "//[^\\n]*|/\\*[\\s\\S]*?\\*/";
  const string = '"(?:\\\\.|[^"\\\\\\n])*"|\'(?:\\\\.|[^\'\\\\\\n])*\'|`(?:\\\\.|[^`\\\\])*`';
  return new RegExp(`(${comment})|(${string})|\\b(\\d[\\w.]*)\\b|([A-Za-z_]\\w*)`, "g");
}

/** @param {Element} code */
export function highlight(code) {
  const language = /language-(\S+)/.exec(code.className)?.[1] ?? "";
  const text = code.textContent ?? "";
  if (PLAIN.test(language) || text.length > 50_000) return;
  const parts = document.createDocumentFragment();
  let at = 0;
  for (const found of text.matchAll(scanner(language))) {
    const [whole, comment, string, number, word] = found;
    const kind = comment ? "c" : string ? "s" : number ? "n" : WORDS.has(word) ? "k" : "";
    if (!kind) continue;
    parts.append(text.slice(at, found.index));
    const span = document.createElement("span");
    span.className = `tok-${kind}`;
    span.textContent = whole;
    parts.append(span);
    at = found.index + whole.length;
  }
  parts.append(text.slice(at));
  code.replaceChildren(parts);
  code.dispatchEvent(new Event("highlighted", { bubbles: true }));
}

const sight = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    if (!isIntersecting) continue;
    sight.unobserve(target);
    highlight(target);
  }
}, { rootMargin: "400px" });

/** @param {ParentNode} root */
export function watchCode(root) {
  for (const code of root.querySelectorAll('pre > code[class^="language-"]')) sight.observe(code);
}
