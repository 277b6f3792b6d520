package bank

import (
	"slices"
	"strings"
	"unicode"
)

// Scores of names, 0 to 100.
const (
	noScore      = -1
	nameVerified = 85 // from here on they are the same person's
	nameReviewed = 60 // from here on they may be, and a person decides
)

// What two words of a name are worth to each other, in percent.
const (
	wordEqual = 100
	// wordInitial is for a later name's initial: "Asha D" of "Asha Desai". A given name's says less:
	// "A Desai" may be a sister.
	wordInitial  = 70
	givenInitial = 40
	// wordTypo is for one letter that is different, missing or too many: perhaps another spelling, as
	// Mohammed and Mohammad, perhaps another name, as Kumar and Kumari.
	wordTypo = 60
)

// likeness is how alike two names of a person or firm are. Case, punctuation, titles, spacing and the
// order of words do not matter; an initial and a word with one letter off count in part; words that
// only one name has count against it.
func likeness(given, registered string) int {
	a, b := words(given), words(registered)
	if len(a) == 0 || len(b) == 0 || isLatin(a) != isLatin(b) {
		return nameReviewed // letters of different scripts: nothing can be said
	}
	if strings.Join(a, "") == strings.Join(b, "") {
		return 100
	}
	a, b = spellOut(a, b), spellOut(b, a)
	total := len(a) + len(b)
	// The best pairs are made first, so that "A" is not taken for "Asha" while another "A" is left.
	credit := 0
	for _, worth := range []int{wordEqual, wordInitial, wordTypo, givenInitial} {
		credit += worth * pairOff(a, b, worth)
	}
	return 2 * credit / total
}

// pairOff blanks pairs of words that are worth just so much to each other, and counts them.
func pairOff(a, b []string, worth int) int {
	pairs := 0
	for i := range a {
		for j := range b {
			if a[i] != "" && b[j] != "" && wordsWorth(a[i], b[j], i == 0 || j == 0) == worth {
				a[i], b[j] = "", ""
				pairs++
			}
		}
	}
	return pairs
}

func wordsWorth(a, b string, first bool) int {
	shorter, longer := []rune(a), []rune(b)
	if len(shorter) > len(longer) {
		shorter, longer = longer, shorter
	}
	switch {
	case a == b:
		return wordEqual
	case len(shorter) == 1 && shorter[0] == longer[0] && first:
		return givenInitial
	case len(shorter) == 1 && shorter[0] == longer[0]:
		return wordInitial
	case len(longer) >= 5 && oneOff(shorter, longer):
		return wordTypo
	default:
		return 0
	}
}

// oneOff reports whether one letter changed or added makes the shorter word the longer one.
func oneOff(shorter, longer []rune) bool {
	same := 0
	for same < len(shorter) && shorter[same] == longer[same] {
		same++
	}
	switch len(longer) - len(shorter) {
	case 0:
		return slices.Equal(shorter[same+1:], longer[same+1:])
	case 1:
		return slices.Equal(shorter[same:], longer[same+1:])
	default:
		return false
	}
}

// titles and joining words say nothing about who it is.
var titles = []string{"MR", "MRS", "MS", "MISS", "DR", "SHRI", "SHREE", "SRI", "SMT", "AND"}

// canonical are the long forms of words that banks shorten.
var canonical = map[string]string{"PVT": "PRIVATE", "LTD": "LIMITED", "CO": "COMPANY", "BROS": "BROTHERS"}

// words parts a name into words in capitals, without punctuation, titles, and what follows a mark of
// descent such as "S/O", son of. Full stops part initials: "R.K." is two words.
func words(name string) []string {
	name = strings.ToUpper(name)
	for _, mark := range []string{" S/O ", " D/O ", " W/O ", " C/O "} {
		name, _, _ = strings.Cut(name, mark)
	}
	name = strings.NewReplacer("'", "", "’", "", "M/S", " ").Replace(name)
	list := strings.FieldsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
	})
	list = slices.DeleteFunc(list, func(w string) bool { return slices.Contains(titles, w) })
	for i, w := range list {
		if long, ok := canonical[w]; ok {
			list[i] = long
		}
	}
	return list
}

// spellOut parts words such as "RK" into initials where other has words for each of them in a row,
// as "Rajesh Kumar".
func spellOut(list, other []string) []string {
	var initials strings.Builder
	for _, w := range other {
		initials.WriteRune([]rune(w)[0])
	}
	spelt := make([]string, 0, len(list))
	for _, w := range list {
		if n := len([]rune(w)); (n == 2 || n == 3) && !slices.Contains(other, w) && strings.Contains(initials.String(), w) {
			spelt = append(spelt, strings.Split(w, "")...)
		} else {
			spelt = append(spelt, w)
		}
	}
	return spelt
}

func isLatin(list []string) bool {
	notLatin := func(r rune) bool { return unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) }
	return !slices.ContainsFunc(list, func(w string) bool { return strings.ContainsFunc(w, notLatin) })
}
