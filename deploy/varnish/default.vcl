# A cache in front of the replicas (Varnish 7). It obeys CDN-Cache-Control (RFC 9213) before Cache-Control. It serves a stale answer
# while it fetches a new one, and while no replica answers.
vcl 4.1;

import directors;
import std;

# Readers' own request: 200 once a replica answers lists and checks, 503 before.
probe answers {
  .url = "/api/check?id=1";
  .interval = 2s;
  .timeout = 2s;
  .window = 3;
  .threshold = 2;
  .initial = 1;
}

backend replica1 { .host = "replica-1"; .port = "8080"; .probe = answers; .connect_timeout = 1s; .first_byte_timeout = 15s; }
backend replica2 { .host = "replica-2"; .port = "8080"; .probe = answers; .connect_timeout = 1s; .first_byte_timeout = 15s; }

sub vcl_init {
  new replicas = directors.round_robin();
  replicas.add_backend(replica1);
  replicas.add_backend(replica2);
}

sub vcl_recv {
  set req.backend_hint = replicas.backend();
  # No answer depends on who asks; a cookie would only keep it out of the cache.
  unset req.http.Cookie;
  unset req.http.Authorization;
  unset req.http.Proxy;
  # A range is the same whatever its query string says, which would only make another object of it.
  if (req.url ~ "^/api/ranges/") {
    set req.url = regsub(req.url, "\?.*$", "");
  }
  # A replica refuses everything but GET, HEAD of pages and preflights. Whoever has just published waits for an answer at least as new, so
  # not for one from here. Donations are never stored.
  if (req.method != "GET" || req.http.Registry-Min-Sequence || req.url ~ "^/api/donate/") {
    return (pass);
  }
  # Whoever waits for a change does not wait for the answer to somebody else.
  if (req.url ~ "^/api/changes/[^?]*[?](.*&)?wait=") {
    return (pass);
  }
  # Old answers are for times when no replica can give a new one: the operator's --stale-if-error is the bound, below.
  # Otherwise stale-while-revalidate is, 20 s by the API.
  if (std.healthy(req.backend_hint)) {
    set req.grace = 20s;
  }
  return (hash);
}

# Ranges are also the same under every name that readers have for this host. So replicas see each of the 4 096 once in
# 10 s, whatever readers do.
sub vcl_hash {
  if (req.url ~ "^/api/ranges/") {
    hash_data(req.url);
    return (lookup);
  }
}

sub vcl_backend_fetch {
  # Changes are waited for up to 25 s.
  if (bereq.url ~ "^/api/changes/") {
    set bereq.first_byte_timeout = 40s;
  }
}

sub vcl_backend_response {
  # A failing replica does not push a good answer out of the cache.
  if (beresp.status >= 500 && bereq.is_bgfetch) {
    return (abandon);
  }
  # A replica that has just started is not ready for some seconds before a probe notices: the other one may be. A request that waits
  # for a sequence has waited long enough, and overload is not passed on.
  if (beresp.status == 503 && beresp.http.Registry-Error != "overloaded" && bereq.retries == 0 && !bereq.http.Registry-Min-Sequence) {
    set bereq.backend = replicas.backend();
    return (retry);
  }
  if (beresp.status >= 400 || beresp.http.Cache-Control ~ "no-store|private") {
    set beresp.uncacheable = true;
    set beresp.ttl = 30s; # for this long, requests for it do not wait for each other
    return (deliver);
  }
  # Without stale-…, obey s-maxage.
  set beresp.grace = 0s;
  if (beresp.http.CDN-Cache-Control ~ "max-age=[0-9]+") {
    set beresp.ttl = std.duration(regsub(beresp.http.CDN-Cache-Control, "^.*max-age=([0-9]+).*$", "\1") + "s", 0s);
  }
  if (beresp.http.CDN-Cache-Control ~ "stale-while-revalidate=[0-9]+") {
    set beresp.grace = std.duration(regsub(beresp.http.CDN-Cache-Control, "^.*stale-while-revalidate=([0-9]+).*$", "\1") + "s", 0s);
  }
  if (beresp.http.CDN-Cache-Control ~ "stale-if-error=[0-9]+") {
    set beresp.grace = std.duration(regsub(beresp.http.CDN-Cache-Control, "^.*stale-if-error=([0-9]+).*$", "\1") + "s", 0s);
  }
  return (deliver);
}

# If a replica has just gone away, try the other one. If there is none and nothing old to show, answer in the API's words.
sub vcl_backend_error {
  if (bereq.retries == 0) {
    return (retry);
  }
  set beresp.http.Content-Type = "application/json; charset=utf-8";
  set beresp.http.Cache-Control = "no-store";
  set beresp.http.Access-Control-Allow-Origin = "*";
  set beresp.http.Retry-After = "5";
  set beresp.uncacheable = true;
  set beresp.ttl = 0s;
  synthetic({"{"error":"Trwa wczytywanie danych.""} + "}");
  return (deliver);
}

sub vcl_deliver {
  unset resp.http.CDN-Cache-Control; # meant for this cache (RFC 9213, 2.1)
  unset resp.http.Via;
  unset resp.http.X-Varnish;
  if (obj.hits > 0) {
    set resp.http.Cache-Status = "varnish; hit";
  } else {
    set resp.http.Cache-Status = "varnish; fwd=miss";
  }
}
