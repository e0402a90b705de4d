package site

import (
	"errors"
	"net/url"
	"strings"
)

// Appeals is the address where an accused person appeals, with placeholders for the number of the report. Empty means
// nowhere.
type Appeals string

// reportPlace is the placeholder for the number of the report.
const reportPlace = "{reportId}"

// ParseAppeals parses an http or https address, which may have a query and {reportId} anywhere after its host. Empty means
// nowhere.
func ParseAppeals(address string) (Appeals, error) {
	if address == "" {
		return "", nil
	}

	// The placeholder is no part of a valid address.
	u, err := url.Parse(strings.ReplaceAll(address, reportPlace, "1"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return "", errors.New("not an http(s) address without user and fragment")
	}
	if strings.ContainsAny(u.Path+u.RawQuery, "{}\"<>\\^` ") {
		return "", errors.New("the only thing in braces can be " + reportPlace)
	}

	// The host must come before the placeholder. If there is no placeholder, start is the whole address.
	start, _, _ := strings.Cut(address, reportPlace)
	if !strings.Contains(start, "://"+u.Host) {
		return "", errors.New(reportPlace + " goes after the host")
	}
	return Appeals(address), nil
}

// CheckReports rejects an address that cannot be used for reporting a fraud. It is like the address of appeals, without
// {reportId}, since there is no report yet. Empty means nowhere.
func CheckReports(address string) error {
	if strings.Contains(address, reportPlace) {
		return errors.New("a report that is yet to be made has no " + reportPlace)
	}
	_, err := ParseAppeals(address)
	return err
}

// AddressFor returns the address with the number of a report, or "" if there is none. With an empty number it is the
// address for a person without a report.
func (a Appeals) AddressFor(reportID string) string {
	if strings.Trim(reportID, ".") == "" {
		reportID = "" // in a path, dots alone would lead elsewhere
	}
	escaped := strings.ReplaceAll(url.QueryEscape(reportID), "+", "%20") // as paths want it, and queries understand it
	return strings.ReplaceAll(string(a), reportPlace, escaped)
}
