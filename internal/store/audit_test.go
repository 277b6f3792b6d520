package store

import "context"

// What a finding says where its query can't name what is wrong.
const (
	Nameless = nameless
	TooLarge = tooLarge
)

// Check holds a database against one more invariant.
func Check(ctx context.Context, db *DB, query string) ([]string, error) {
	a, end, err := db.newAuditor(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer end()
	found := a.check(invariant{query: query})
	if a.err != nil {
		return nil, a.err
	}
	var problems []string
	for _, v := range found.Violations {
		problems = append(problems, v.Problem)
	}
	return problems, nil
}
