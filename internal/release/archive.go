package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name, from string
	mode       fs.FileMode
}

// writeTar packs the files in the order given, owned by root.
func writeTar(to string, modified time.Time, entries []entry) error {
	return write(to, func(w io.Writer) error {
		zipped := gzip.NewWriter(w) // whose header holds neither name nor time
		packed := tar.NewWriter(zipped)
		err := pack(entries, func(e entry, data []byte) error {
			head := &tar.Header{
				Name: e.name, Size: int64(len(data)), Mode: int64(e.mode), ModTime: modified, Format: tar.FormatUSTAR,
			}
			if err := packed.WriteHeader(head); err != nil {
				return err
			}
			_, err := packed.Write(data)
			return err
		})
		if err != nil {
			return err
		}
		if err := packed.Close(); err != nil {
			return fmt.Errorf("end archive: %w", err)
		}
		return zipped.Close()
	})
}

// writeZip packs the files in the order given.
func writeZip(to string, modified time.Time, entries []entry) error {
	return write(to, func(w io.Writer) error {
		packed := zip.NewWriter(w)
		err := pack(entries, func(e entry, data []byte) error {
			head := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: modified}
			head.SetMode(e.mode)
			in, err := packed.CreateHeader(head)
			if err != nil {
				return err
			}
			_, err = in.Write(data)
			return err
		})
		if err != nil {
			return err
		}
		return packed.Close()
	})
}

// pack passes the files and their contents to add, one by one.
func pack(entries []entry, add func(entry, []byte) error) error {
	for _, e := range entries {
		data, err := os.ReadFile(e.from)
		if err == nil {
			err = add(e, data)
		}
		if err != nil {
			return fmt.Errorf("pack %s: %w", e.name, err)
		}
	}
	return nil
}

// sums writes SHA256SUMS, as sha256sum checks it.
func sums(dir string) error {
	const name = "SHA256SUMS"
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list folder: %w", err)
	}
	return write(filepath.Join(dir, name), func(w io.Writer) error {
		for _, f := range files { // sorted by name
			data, err := os.ReadFile(filepath.Join(dir, f.Name())) //nolint:gosec // written here
			if err != nil {
				return fmt.Errorf("read file: %w", err)
			}
			if _, err := fmt.Fprintf(w, "%x  %s\n", sha256.Sum256(data), f.Name()); err != nil {
				return fmt.Errorf("write sums: %w", err)
			}
		}
		return nil
	})
}

func write(to string, content func(io.Writer) error) (err error) {
	f, err := os.Create(to) //nolint:gosec // in the folder asked for
	if err != nil {
		return fmt.Errorf("create file: %w", err)
	}
	defer func() {
		if e := f.Close(); err == nil && e != nil {
			err = fmt.Errorf("write %s: %w", to, e)
		}
	}()
	return content(f)
}
