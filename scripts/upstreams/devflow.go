// What devflow itself does with runs: `write BASE` records the runs on standard input in its store, `resave IN OUT` loads
// every run and saves it again, `list BASE` prints what its store lists.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"oracle/transcript"
)

type run struct {
	ID     string            `json:"id"`
	FlowID string            `json:"flowId"`
	NodeID string            `json:"nodeId"`
	Input  map[string]any    `json:"input"`
	Turns  []transcript.Turn `json:"turns"`
	Cost   float64           `json:"cost"`
	Status string            `json:"status"`
	Error  string            `json:"error"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(base string) {
	store, err := transcript.NewFileStore(transcript.StoreConfig{BaseDir: base})
	check(err)
	var runs []run
	check(json.NewDecoder(os.Stdin).Decode(&runs))
	for _, r := range runs {
		check(store.StartRun(r.ID, transcript.RunMetadata{FlowID: r.FlowID, NodeID: r.NodeID, Input: r.Input}))
		for _, turn := range r.Turns {
			check(store.RecordTurn(r.ID, turn))
		}
		check(store.AddCost(r.ID, r.Cost))
		if r.Error != "" {
			check(store.EndRunWithError(r.ID, errors.New(r.Error)))
		} else {
			check(store.EndRun(r.ID, transcript.RunStatus(r.Status)))
		}
	}
}

func resave(in, out string) {
	folders, err := os.ReadDir(filepath.Join(in, "runs"))
	check(err)
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		loaded, err := transcript.Load(in, folder.Name())
		check(err)
		check(loaded.Save(out))
	}
}

func list(base string) {
	store, err := transcript.NewFileStore(transcript.StoreConfig{BaseDir: base})
	check(err)
	runs, err := store.List(transcript.ListFilter{})
	check(err)
	for _, meta := range runs {
		line, err := json.Marshal(meta)
		check(err)
		fmt.Println(string(line))
	}
}

func main() {
	switch os.Args[1] {
	case "write":
		write(os.Args[2])
	case "resave":
		resave(os.Args[2], os.Args[3])
	case "list":
		list(os.Args[2])
	}
}
