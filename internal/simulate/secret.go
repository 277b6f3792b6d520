package simulate

// keepSecret looks for account numbers in a text that may be read by people who have no business with them.
func (m *market) keepSecret(text string) {
	from := -1
	for i := range len(text) + 1 {
		digit := i < len(text) && text[i] >= '0' && text[i] <= '9'
		switch {
		case digit && from < 0:
			from = i
		case !digit && from >= 0:
			if i-from >= shortestNumber && m.numbers[text[from:i]] {
				m.broken(numbersSecret, "", "an account number is in: "+text)
			}
			from = -1
		}
	}
}

// shortestNumber is how many digits an account number has at least.
const shortestNumber = 9

// guard looks for account numbers in an error.
func (m *market) guard(err error) {
	if err != nil {
		m.tally.checks++
		m.keepSecret(err.Error())
	}
}
