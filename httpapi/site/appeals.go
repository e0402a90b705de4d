package site

import (
	"errors"
	"net/url"
	"strings"
)

// Appeals is where an accused person appeals. The zero value means nowhere.
type Appeals struct{ path, query string } // of the address, with its scheme and host; a query begins with ?

// reportPlace is the placeholder for the number of the report.
const reportPlace = "{reportId}"

// ParseAppeals parses an http or https address, which may have a query and {reportId} anywhere after its host. Empty means
// nowhere.
func ParseAppeals(address string) (Appeals, error) {
	if address == "" {
		return Appeals{}, nil
	}

	// The placeholder is no part of a valid address.
	u, err := url.Parse(strings.ReplaceAll(address, reportPlace, "1"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return Appeals{}, errors.New("not an http(s) address without user and fragment")
	}
	if strings.ContainsAny(u.Path+u.RawQuery, "{}\"<>\\^` ") {
		return Appeals{}, errors.New("the only thing in braces can be " + reportPlace)
	}

	hostEnd := strings.Index(address, u.Host) + len(u.Host)
	if strings.Contains(address[:hostEnd], reportPlace) || hostEnd < len(u.Scheme)+len("://")+len(u.Host) {
		return Appeals{}, errors.New(reportPlace + " goes after the host")
	}

	query := strings.IndexByte(address, '?')
	if query < 0 {
		query = len(address)
	}
	return Appeals{address[:query], address[query:]}, nil
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

// AddressFor returns the address with the number of a report, or "" if there is none. With an empty number
// it is the address for a person without a report.
func (a Appeals) AddressFor(reportID string) string {
	if strings.Trim(reportID, ".") == "" {
		reportID = "" // in a path, dots alone would lead elsewhere
	}
	return strings.ReplaceAll(a.path, reportPlace, url.PathEscape(reportID)) +
		strings.ReplaceAll(a.query, reportPlace, url.QueryEscape(reportID))
}
