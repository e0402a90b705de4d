package site

import (
	"errors"
	"net/url"
	"strings"
)

// Appeals is the address where an accused person appeals, with placeholders for the number of the report. It is empty if
// there is no such address.
type Appeals string

// reportPlace is the placeholder for the number of the report.
const reportPlace = "{reportId}"

// ParseAppeals parses an http or https address, which may have a query and {reportId} anywhere after its host. The address
// may be empty.
func ParseAppeals(address string) (Appeals, error) {
	if address == "" {
		return "", nil
	}

	// Parse the address with a digit in place of the placeholder. All other braces are refused below.
	u, err := url.Parse(strings.ReplaceAll(address, reportPlace, "1"))
	isWeb := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
	if !isWeb || u.User != nil || u.Fragment != "" {
		return "", errors.New("not an http(s) address without user and fragment")
	}
	if strings.ContainsAny(u.Path+u.RawQuery, "{}\"<>\\^` ") {
		return "", errors.New("the only thing in braces can be " + reportPlace)
	}

	// The host must come before the placeholder. Without a placeholder, start is the whole address.
	start, _, _ := strings.Cut(address, reportPlace)
	if !strings.Contains(start, "://"+u.Host) {
		return "", errors.New(reportPlace + " goes after the host")
	}
	return Appeals(address), nil
}

// CheckReports returns an error for an address where people cannot report a fraud. The address must be as for ParseAppeals, but
// without {reportId}, since there is no report yet.
func CheckReports(address string) error {
	if strings.Contains(address, reportPlace) {
		return errors.New("a report that is yet to be made has no " + reportPlace)
	}
	_, err := ParseAppeals(address)
	return err
}

// AddressFor returns the address with the number of a report in it, or "" if there is no address. For a person without a
// report, reportID is empty.
func (a Appeals) AddressFor(reportID string) string {
	// A path of dots alone, such as "..", would lead elsewhere.
	if strings.Trim(reportID, ".") == "" {
		reportID = ""
	}

	// A space is %20 in a path and in a query, but + only in a query.
	escaped := strings.ReplaceAll(url.QueryEscape(reportID), "+", "%20")
	return strings.ReplaceAll(string(a), reportPlace, escaped)
}
