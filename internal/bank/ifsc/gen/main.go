// Command gen makes directory.txt from a release of github.com/razorpay/ifsc.
//
// Unpack the release and run, in internal/bank/ifsc:
//
//	go run ./gen -version 2.0.50 -src path/to/release/src >directory.txt
//
// Copy the release's LICENSE beside it, if that has changed.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	version := flag.String("version", "", "the release's `number`, written into the file")
	src := flag.String("src", "", "the `directory` that holds IFSC.json")
	flag.Parse()
	if err := run(*version, *src, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(version, src string, out io.Writer) error {
	if version == "" || src == "" {
		return errors.New("both -version and -src are needed")
	}
	var names, sublets, prefixes map[string]string
	var branches map[string][]any
	for file, dest := range map[string]any{
		"banknames.json":      &names,    // bank code → name
		"IFSC.json":           &branches, // bank code → branch codes, those of digits alone as numbers
		"sublet.json":         &sublets,  // IFSC → code of the bank that uses it
		"custom-sublets.json": &prefixes, // start of IFSCs → code or name of the bank that uses them
	} {
		if err := readJSON(filepath.Join(src, file), dest); err != nil {
			return err
		}
	}
	lines := maps.Clone(names)
	for _, table := range []map[string]string{prefixes, sublets} {
		for key, bank := range table {
			lines[key] = cmp.Or(names[bank], bank)
		}
	}
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "# Banks and branch codes of India, from github.com/razorpay/ifsc %s (MIT; see LICENSE). Made by gen.\n", version)
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		list, err := compact(branches[key])
		if err != nil {
			return fmt.Errorf("branches of %s: %w", key, err)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", key, strings.TrimSpace(lines[key]), list)
	}
	return w.Flush()
}

func readJSON(path string, dest any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, dest); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

var lettered = regexp.MustCompile(`^[0-9A-Z]{6}$`)

// compact writes branch codes as "1-3 7 0000SC": numbers and runs of them, then the rest as they are.
func compact(branches []any) (string, error) {
	var numbers []int
	var words []string
	for _, b := range branches {
		switch b := b.(type) {
		case float64:
			numbers = append(numbers, int(b))
		case string:
			if _, err := strconv.Atoi(b); err == nil || !lettered.MatchString(b) {
				return "", fmt.Errorf("%q is not a branch code with a letter in it", b)
			}
			words = append(words, b)
		default:
			return "", fmt.Errorf("%v is neither a number nor text", b)
		}
	}
	slices.Sort(numbers)
	slices.Sort(words)
	return strings.Join(append(runs(slices.Compact(numbers)), slices.Compact(words)...), " "), nil
}

// runs writes sorted numbers, those that follow each other as "first-last".
func runs(numbers []int) []string {
	var list []string
	for i := 0; i < len(numbers); {
		first := numbers[i]
		last := first
		for i++; i < len(numbers) && numbers[i] == last+1; i++ {
			last++
		}
		if first == last {
			list = append(list, strconv.Itoa(first))
		} else {
			list = append(list, fmt.Sprintf("%d-%d", first, last))
		}
	}
	return list
}
