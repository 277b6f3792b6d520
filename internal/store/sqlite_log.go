package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
)

// SQLite's log (the file beside the database that ends in -wal) is a header and frames, each a page and a checksum
// over all before it. After a crash SQLite takes what is whole up to the first frame that is not, and forgets
// the rest: the tail of a commit that was never acknowledged is torn. It does the same where a frame in the middle
// is damaged, and acknowledged commits after it are gone without a word. So we look before SQLite does.
const (
	logHeader     = 32
	frameHeader   = 24
	logMagic      = 0x377f0682 // the last bit says that checksums are big-endian
	usualPageSize = 4096
)

// checkLog refuses a log that is damaged in its middle: from the damage on, two commits follow each other. The
// first was durable before the second was begun, and so was all before it. (What a commit that failed has left
// behind the log's end is one commit at most in a row.)
func checkLog(database string) error {
	path := database + "-wal"
	d, err := lasting(func() (damage, error) { return readLog(path) })
	if err != nil {
		return fmt.Errorf("read the log %s: %w", path, err)
	}
	if d.found {
		return fmt.Errorf("the database's log %s is damaged after byte %d, and what was acknowledged later can't be read any more: keep a copy of all the database's files, restore a backup, or, to go on with what comes before the damage as after a restore, run: truncate -s %[2]d %[1]s",
			path, d.whole)
	}
	return nil
}

// damage is what a reading of a log found.
type damage struct {
	found bool
	whole int64  // bytes before it
	salt  uint64 // of the log
}

// lasting reads a log until two readings agree. Beside a process that writes, a reading may come upon a frame before
// it is written and upon the next ones after, as if it were damaged; the next reading finds it whole, or another log.
func lasting(read func() (damage, error)) (damage, error) {
	const maxReadings = 20
	var last damage
	for range maxReadings {
		d, err := read()
		if err != nil || !d.found || d == last {
			return d, err
		}
		last = d
	}
	return damage{}, nil // damage stays where it is
}

func readLog(path string) (damage, error) {
	file, err := os.Open(path) //nolint:gosec // the operator names the file
	if errors.Is(err, fs.ErrNotExist) {
		return damage{}, nil
	}
	if err != nil {
		return damage{}, err
	}
	defer file.Close()
	l := logReader{from: bufio.NewReaderSize(file, 1<<20)}
	whole, damaged, err := l.read()
	return damage{damaged, whole, l.salt}, err
}

// logReader reads a log once from its beginning.
type logReader struct {
	from      io.Reader
	bigEndian bool   // as its checksums are
	salt      uint64 // of all frames of the log; zero until it is known
	frame     []byte
	sum       [2]uint32 // as stored by what was read last
}

// read returns how many bytes are whole, and whether there are commits behind what is not.
func (l *logReader) read() (whole int64, damaged bool, err error) {
	header := make([]byte, logHeader)
	if _, err := io.ReadFull(l.from, header); err != nil {
		return 0, false, ignoreEnd(err)
	}
	unbroken := l.begin(header)
	if unbroken {
		whole = logHeader
	}
	commits := 0 // in a row, behind the damage
	for {
		if _, err := io.ReadFull(l.from, l.frame); err != nil {
			return whole, false, ignoreEnd(err)
		}
		fits, isCommit := l.next()
		switch {
		case unbroken && fits:
			whole += int64(len(l.frame))
		case !fits:
			unbroken, commits = false, 0
		}
		if !unbroken && isCommit {
			commits++
		}
		if commits == 2 {
			return whole, true, nil
		}
	}
}

// begin takes over what the header says, and reports whether it is whole. If not, the log may be as we write them.
func (l *logReader) begin(header []byte) (whole bool) {
	magic, page := binary.BigEndian.Uint32(header), int(binary.BigEndian.Uint32(header[8:]))
	l.bigEndian = magic == logMagic|1
	l.sum = storedSum(header[24:])
	l.salt = binary.BigEndian.Uint64(header[16:])
	whole = magic&^1 == logMagic && l.add([2]uint32{}, header[:24]) == l.sum
	if !whole {
		page, l.salt = usualPageSize, 0
	}
	l.frame = make([]byte, frameHeader+page)
	return whole
}

// next reports whether the frame is of this log and follows the one before it, and whether it says that it ends a
// commit of this log.
func (l *logReader) next() (fits, isCommit bool) {
	sum := l.add(l.add(l.sum, l.frame[:8]), l.frame[frameHeader:])
	l.sum = storedSum(l.frame[16:])
	salt := binary.BigEndian.Uint64(l.frame[8:])
	if l.salt == 0 {
		l.salt = salt
	}
	fits = sum == l.sum && salt == l.salt
	return fits, salt == l.salt && binary.BigEndian.Uint32(l.frame[4:]) != 0
}

func storedSum(b []byte) [2]uint32 {
	return [2]uint32{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

// add goes on with a checksum.
func (l *logReader) add(sum [2]uint32, b []byte) [2]uint32 {
	one, two := sum[0], sum[1]
	for ; len(b) >= 8; b = b[8:] {
		x, y := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if l.bigEndian {
			x, y = bits.ReverseBytes32(x), bits.ReverseBytes32(y)
		}
		one += x + two
		two += y + one
	}
	return [2]uint32{one, two}
}

// ignoreEnd takes the end of the file for no error: a torn tail ends anywhere.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
