package sandbox

import (
	"fmt"
	"strings"
	"time"

	"bursar/internal/gateway/razorpayx"
)

const (
	digits62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	idDigits = 14
)

// vendorID writes a row's number as the vendor writes ids: a prefix and 14 letters and digits.
func vendorID(prefix string, seq int64) string {
	b := make([]byte, len(prefix)+idDigits)
	copy(b, prefix)
	for i := len(b) - 1; i >= len(prefix); i-- {
		b[i] = digits62[seq%62]
		seq /= 62
	}
	return string(b)
}

// parseID reads what vendorID writes; anything else is 0, the number of no row.
func parseID(prefix, id string) int64 {
	digits, ok := strings.CutPrefix(id, prefix)
	if !ok || len(digits) != idDigits {
		return 0
	}
	var seq int64
	for _, d := range []byte(digits) {
		value := strings.IndexByte(digits62, d)
		if value < 0 || seq > 1<<56 {
			return 0
		}
		seq = seq*62 + int64(value)
	}
	return seq
}

var indianTime = time.FixedZone("IST", 5*3600+1800)

// newUTR makes a bank's reference in the form of its mode: IMPS has 12 digits that begin with the
// year's last digit and the day of the year, NEFT 16 characters, RTGS 22.
func newUTR(mode string, seq int64, now time.Time) string {
	now = now.In(indianTime)
	switch mode {
	case "NEFT":
		return fmt.Sprintf("SBOXN%02d%03d%06d", now.Year()%100, now.YearDay(), seq%1e6)
	case "RTGS":
		return fmt.Sprintf("SBOXRC%s%08d", now.Format("20060102"), seq%1e8)
	default:
		return fmt.Sprintf("%d%03d%08d", now.Year()%10, now.YearDay(), seq%1e8)
	}
}

// why describes the reasons that the sandbox gives.
var why = map[string]razorpayx.StatusDetails{
	"payout_bank_processing":     {Source: "gateway", Description: "The partner bank is working on the payout."},
	"payout_processed":           {Source: "beneficiary_bank", Description: "The money was credited to the beneficiary's account."},
	"low_balance":                {Source: "business", Description: "The account's balance does not cover the payout."},
	"beneficiary_bank_down":      {Source: "beneficiary_bank", Description: "The beneficiary's bank is not reachable."},
	"pending_approval":           {Source: "business", Description: "The payout waits for an approval."},
	"bank_account_closed":        {Source: "beneficiary_bank", Description: "The beneficiary's account is closed."},
	"beneficiary_bank_rejected":  {Source: "beneficiary_bank", Description: "The beneficiary's bank sent the money back."},
	"validation_request_created": {Source: "internal", Description: "The validation was taken on."},
	"validation_completed":       {Source: "beneficiary_bank", Description: "The validation is complete."},
	"gateway_technical_error":    {Source: "gateway", Description: "The partner bank had a technical problem."},
}

func statusDetails(reason string) *razorpayx.StatusDetails {
	if reason == "" {
		return nil
	}
	details := why[reason]
	details.Reason = razorpayx.Text(reason)
	return &details
}

var bankNames = map[string]string{
	"HDFC": "HDFC Bank", "ICIC": "ICICI Bank", "SBIN": "State Bank of India", "UTIB": "Axis Bank",
	"KKBK": "Kotak Mahindra Bank", "YESB": "Yes Bank", "RATN": "RBL Bank",
}

func bankName(ifsc string) string {
	if name, ok := bankNames[ifsc[:4]]; ok {
		return name
	}
	return ifsc[:4] + " Bank"
}
