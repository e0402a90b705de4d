// Command generate makes the lexicon of package terms (lexicon.fst) from the files of a Polish
// dictionary for hunspell, and draws the sample that its tests compare (testdata/sample.txt).
//
// The dictionary is sjp.pl's, by Marek Futrega, as Debian packages it. To take a newer one, unpack
// the package
//
//	apt-get download hunspell-pl && dpkg -x hunspell-pl_*.deb unpacked
//
// and run in readmodel/terms
//
//	go run ./generate -package "hunspell-pl 1:7.5.0-1" -dir unpacked/usr/share/hunspell
//
// with its own version. The same files give the same lexicon. Then name the version in
// NOTICE.lexicon and raise terms.Version.
package main

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"example.org/registry/readmodel/terms/lexicon"
)

func main() {
	dir := flag.String("dir", "/usr/share/hunspell", "where pl_PL.aff and pl_PL.dic are")
	made := flag.String("package", "", "the package that they are of, with its version")
	flag.Parse()
	if err := run(*dir, *made, "."); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run reads the dictionary in dir and writes the files to out.
func run(dir, made, out string) error {
	if made == "" {
		return errors.New("-package: which package is it, and which version?")
	}
	digest := sha256.New()
	d, err := readDictionary(dir, digest)
	if err != nil {
		return err
	}
	forms := d.forms()
	source := fmt.Sprintf("%s, SHA-256 of pl_PL.aff and pl_PL.dic %x", made, digest.Sum(nil))
	if err := write(filepath.Join(out, "lexicon.fst"), func(w io.Writer) error {
		left, err := lexicon.Write(w, source, forms)
		fmt.Printf("%d entries, %d forms, of which %d are left out\n", len(d.entries), len(forms), left)
		return err
	}); err != nil {
		return err
	}
	return write(filepath.Join(out, "testdata", "sample.txt"), func(w io.Writer) error {
		d.sample(w, source)
		return nil
	})
}

// readDictionary reads both files, and writes their content to digest.
func readDictionary(dir string, digest io.Writer) (*dictionary, error) {
	aff, err := os.Open(filepath.Join(dir, "pl_PL.aff"))
	if err != nil {
		return nil, err
	}
	defer aff.Close()
	a, err := readAffixes(io.TeeReader(aff, digest))
	if err != nil {
		return nil, err
	}
	dic, err := os.Open(filepath.Join(dir, "pl_PL.dic"))
	if err != nil {
		return nil, err
	}
	defer dic.Close()
	entries, err := readEntries(io.TeeReader(dic, digest))
	if err != nil {
		return nil, err
	}
	return newDictionary(a, entries), nil
}

// write makes a file. It also returns the errors of content's writes.
func write(name string, content func(io.Writer) error) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := bufio.NewWriter(file)
	if err := content(w); err != nil {
		return err
	}
	return w.Flush()
}
