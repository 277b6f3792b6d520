package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// zoneCookie is where the script notes the viewer's zone, by its name in the zone database.
const zoneCookie = "zone"

// maxZoneBytes bounds a zone's name; the longest that there is has 32.
const maxZoneBytes = 64

// zoneOf is the viewer's zone if the browser has told it, and the service's otherwise.
func (d *dashboard) zoneOf(r *http.Request) (zone *time.Location, known bool) {
	cookie, err := r.Cookie(zoneCookie)
	if err != nil || len(cookie.Value) > 2*maxZoneBytes {
		return d.o.Zone, false
	}
	name, err := url.PathUnescape(cookie.Value)
	if err != nil || name == "" || name == "Local" || len(name) > maxZoneBytes || strings.ContainsFunc(name, notInZoneName) {
		return d.o.Zone, false
	}
	zone, err = time.LoadLocation(name)
	if err != nil {
		return d.o.Zone, false
	}
	return zone, true
}

func notInZoneName(c rune) bool {
	return !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '/' || c == '_' || c == '-' || c == '+')
}

// todaysName is what a zone is called, which browsers may go on calling by an older name.
func todaysName(zone string) string {
	switch zone {
	case "Asia/Calcutta":
		return "Asia/Kolkata"
	case "Asia/Katmandu":
		return "Asia/Kathmandu"
	case "Asia/Saigon":
		return "Asia/Ho_Chi_Minh"
	case "Asia/Rangoon":
		return "Asia/Yangon"
	case "Europe/Kiev":
		return "Europe/Kyiv"
	default:
		return zone
	}
}

// zoneWords names a zone as people know it, such as "IST (Asia/Kolkata)". One without letters of its own
// goes by how far it is from UTC.
func zoneWords(zone *time.Location, now time.Time) string {
	name := todaysName(zone.String())
	at := now.In(zone)
	short := at.Format("MST")
	if strings.ContainsAny(short, "+-0123456789") {
		short = "UTC" + strings.TrimSuffix(at.Format("-07:00"), ":00")
	}
	if short == name {
		return name
	}
	return short + " (" + name + ")"
}

// TimesIn names the zone of the page's times. The script writes the same words on the first view, before the server knows the zone.
func (v view) TimesIn() string {
	if v.OwnZone == "" {
		return v.Zone
	}
	return "your time zone, " + todaysName(v.OwnZone)
}

// instant is a moment as a page shows it: in words, and exactly.
type instant struct {
	// Machine is RFC 3339 in UTC, or a date alone.
	Machine string
	Text    string
	// Exact is to the second, with the zone.
	Exact string
	// Ago is how long ago it was; empty for a moment ahead, or more than a day ago.
	Ago string
}

const (
	dayLayout    = "2 Jan"
	secondLayout = "2 Jan 2006, 15:04:05"
	minuteLayout = "2 Jan 2006, 15:04"
	exactLayout  = "Mon 2 Jan 2006, 15:04:05 MST"
)

// At is a moment in the viewer's zone.
func (v view) At(t time.Time) instant {
	local := t.In(v.zone)
	at := instant{Machine: t.UTC().Format(time.RFC3339), Text: local.Format(minuteLayout), Exact: local.Format(exactLayout)}
	switch ago := v.now.Sub(t); {
	case ago >= 0 && ago < time.Minute:
		at.Ago = "just now"
	case ago > 0 && ago < 24*time.Hour:
		at.Ago = span(ago) + " ago"
	}
	return at
}

// Now is when the page was made.
func (v view) Now() time.Time { return v.now }

// Clock is when the page was made, exactly.
func (v view) Clock() string { return v.now.UTC().Format(time.RFC3339Nano) }

// Second is a moment to the second, for what is a matter of seconds.
func (v view) Second(t time.Time) instant {
	at := v.At(t)
	at.Text = t.In(v.zone).Format(secondLayout)
	return at
}

// Day is a day as the service counts them, which is the same for every viewer.
func (view) Day(t time.Time) instant {
	return instant{Machine: t.Format(time.DateOnly), Text: t.Format(dayLayout), Exact: t.Format("Monday, 2 January 2006")}
}
