// Command goclient calls every operation of the registry with the client that oapi-codegen
// generates from openapi.yaml. It fails if a response does not fit its type. TestGoClient generates
// the client in this directory and runs both.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// answer is implemented by all responses of the client.
type answer interface{ StatusCode() int }

func run(ctx context.Context, server string) error {
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	c, err := NewClientWithResponses(server, WithHTTPClient(stay))
	if err != nil {
		return err
	}
	called := map[string]bool{}
	call := func(operation string, want int, a answer, err error) error {
		called[operation] = true
		if err != nil {
			return fmt.Errorf("%s: %w", operation, err)
		}
		if a.StatusCode() != want {
			return fmt.Errorf("%s: status %d, want %d", operation, a.StatusCode(), want)
		}
		return nil
	}
	if err := calls(ctx, c, call); err != nil {
		return err
	}
	return complete(called)
}

// complete fails if an operation of the client was not called. Only browsers send preflights.
func complete(called map[string]bool) error {
	all := reflect.TypeFor[ClientWithResponsesInterface]()
	for m := range all.Methods() {
		operation, found := strings.CutSuffix(m.Name, "WithResponse")
		if found && !called[operation] && !strings.HasPrefix(operation, "Preflight") {
			return fmt.Errorf("%s is not called: add it to calls", operation)
		}
	}
	return nil
}

func calls(ctx context.Context, c *ClientWithResponses, call func(string, int, answer, error) error) error {
	scammers, err := c.ListScammersWithResponse(ctx, &ListScammersParams{Limit: new(2), Sort: new(ListScammersParamsSortAz)})
	if err := call("ListScammers", 200, scammers, err); err != nil {
		return err
	}
	if page := scammers.JSON200; page == nil || len(page.Data) != 2 || page.Data[0].Name == "" || page.Total < 2 || !page.HasMore {
		return fmt.Errorf("ListScammers: %s", scammers.Body)
	}
	servers, err := c.ListServersWithResponse(ctx, nil)
	if err := call("ListServers", 200, servers, err); err != nil {
		return err
	}
	legit, err := c.ListLegitWithResponse(ctx, nil)
	if err := call("ListLegit", 200, legit, err); err != nil {
		return err
	}
	if servers.JSON200 == nil || legit.JSON200 == nil {
		return errors.New("ListServers, ListLegit: no page")
	}
	check, err := c.CheckWithResponse(ctx, &CheckParams{Id: &scammers.JSON200.Data[0].Id})
	if err := call("Check", 200, check, err); err != nil {
		return err
	}
	if found := check.JSON200; found == nil || len(found.Results) == 0 || found.Results[0].Kind != CheckResultKindScammers {
		return fmt.Errorf("Check: %s", check.Body)
	}
	batch, err := c.CheckBatchWithResponse(ctx, &CheckBatchParams{Ids: []string{scammers.JSON200.Data[0].Id, "nobody"}})
	if err := call("CheckBatch", 200, batch, err); err != nil {
		return err
	}
	if found := batch.JSON200; found == nil || len(found.Results) != 2 || len(found.Results[0].Results) == 0 || len(found.Results[1].Results) != 0 {
		return fmt.Errorf("CheckBatch: %s", batch.Body)
	}
	record, err := c.RecordWithResponse(ctx, nil)
	if err := call("Record", 200, record, err); err != nil {
		return err
	}
	if record.JSON200 == nil {
		return fmt.Errorf("Record: %s", record.Body)
	}
	ranges, err := c.RangesWithResponse(ctx, nil)
	if err := call("Ranges", 200, ranges, err); err != nil {
		return err
	}
	within, err := c.RangeWithResponse(ctx, "abc", nil)
	if err := call("Range", 200, within, err); err != nil {
		return err
	}
	if all := ranges.JSON200; all == nil || all.Lines != strings.Count(string(within.Body), "\n") {
		return fmt.Errorf("Ranges: %s, Range: %s", ranges.Body, within.Body)
	}
	feed, err := c.FeedWithResponse(ctx, nil)
	if err := call("Feed", 200, feed, err); err != nil {
		return err
	}
	changes, err := c.ChangesWithResponse(ctx, feed.JSON200.Epoch, &ChangesParams{Since: 0})
	if err := call("Changes", 200, changes, err); err != nil {
		return err
	}
	if page := changes.JSON200; page == nil || len(page.Changes) == 0 || !page.UpToDate || page.Until != feed.JSON200.Sequence {
		return fmt.Errorf("Changes: %s", changes.Body)
	}
	for _, change := range changes.JSON200.Changes {
		switch c, err := change.ValueByDiscriminator(); c := c.(type) {
		case ChangeSet:
			if c.Entry.Name == "" || c.ReportedAt.IsZero() {
				return fmt.Errorf("Changes: %+v", c)
			}
		case ChangeRemove:
			if c.UnderscoreId == "" {
				return fmt.Errorf("Changes: %+v", c)
			}
		default:
			return fmt.Errorf("Changes: %T %w", c, err)
		}
	}
	gone, err := c.ChangeEventsWithResponse(ctx, "other", &ChangeEventsParams{})
	if err := call("ChangeEvents", 400, gone, err); err != nil {
		return err
	}
	missing, err := c.CheckWithResponse(ctx, nil)
	if err := call("Check", 400, missing, err); err != nil {
		return err
	}
	if missing.JSON400 == nil || missing.JSON400.Error == "" {
		return fmt.Errorf("Check: %s", missing.Body)
	}
	search, err := c.SearchWithResponse(ctx, &SearchParams{Q: "łotr"})
	if err := call("Search", 200, search, err); err != nil {
		return err
	}
	if found := search.JSON200; found == nil || len(found.Results) == 0 || found.Results[0].Entry.Name == "" {
		return fmt.Errorf("Search: %s", search.Body)
	}
	status, err := c.StatusWithResponse(ctx)
	if err := call("Status", 200, status, err); err != nil {
		return err
	}
	if status.JSON200 == nil || len(status.JSON200.Checks) != 4 {
		return fmt.Errorf("Status: %s", status.Body)
	}
	donation, err := c.DonationStatusWithResponse(ctx, &DonationStatusParams{Id: "nobody-knows"})
	if err := call("DonationStatus", 404, donation, err); err != nil {
		return err
	}
	avatar, err := c.AvatarWithResponse(ctx, "1", nil)
	if err := call("Avatar", 200, avatar, err); err != nil {
		return err
	}
	proofs, err := c.ProofsWithResponse(ctx, "p-1")
	if err := call("Proofs", 302, proofs, err); err != nil {
		return err
	}
	openapi, err := c.OpenapiWithResponse(ctx, nil)
	if err := call("Openapi", 200, openapi, err); err != nil {
		return err
	}
	asyncapi, err := c.AsyncapiWithResponse(ctx, nil)
	return call("Asyncapi", 200, asyncapi, err)
}
