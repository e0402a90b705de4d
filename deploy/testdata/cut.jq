# Cuts the kinds that deploy/kubernetes uses out of Kubernetes' own description, and refuses members that it does not
# know: jq -cf cut.jq swagger.json > kubernetes.schema.json, with api/openapi-spec/swagger.json of the release wanted.
def reached($all):
  def more: . as $have
    | ([.[] | $all[.] | .. | objects | ."$ref"? // empty | ltrimstr("#/definitions/")] + $have | unique) as $next
    | if ($next | length) == ($have | length) then $next else $next | more end;
  more;
.definitions as $all
| ["Deployment", "StatefulSet", "Job", "CronJob", "PersistentVolumeClaim", "Service", "ConfigMap", "ServiceAccount", "PodDisruptionBudget", "HorizontalPodAutoscaler",
   "NetworkPolicy", "Ingress"] as $kinds
| ($all | to_entries | map(select(
    (.value."x-kubernetes-group-version-kind" // [] | any(.kind as $k | $kinds | index($k))) and (.key | test("[.](v1|v2)[.]"))) | .key)) as $roots
| { "$schema": "http://json-schema.org/draft-07/schema#",
    definitions: ($roots | reached($all) | map({key: ., value: ($all[.]
      | del(.. | objects | .description?, .["x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"]?)
      | if .properties then .additionalProperties //= false else . end)}) | from_entries),
    kinds: ([$roots[] | . as $r | $all[$r]."x-kubernetes-group-version-kind"[] | {key: ((if .group == "" then "" else .group + "/" end) + .version + "/" + .kind), value: $r}] | from_entries) }
| .definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"].type = ["string", "integer"]
| .definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"].type = ["string", "number"]
