package sandbox

import (
	"maps"
	"slices"
)

// StoryDigits are the last four digits that choose a story.
func StoryDigits() []string { return slices.Sorted(maps.Keys(stories)) }
