{{/* What cannot work, said before anything is installed: all of it at once. */}}
{{- define "hookonce.complaints" -}}
{{- $v := .Values }}
{{- $config := $v.config }}
{{- $nodes := dig "redis" "nodes" list $config }}
{{- $gateway := eq $v.mode "gateway" }}
{{- if not $config.routes }}
- "config.routes is empty: name at least one route, such as {name: stripe, path: /webhooks/stripe, sender: stripe, secrets: [{file: /etc/hookonce/secrets/stripe}]}."
{{- end }}
{{- if and $gateway (regexMatch "^$|^unix:|//(127\\.|localhost|\\[::1\\])" (dig "upstream" "url" "" $config)) }}
- "config.upstream.url must name the application's Service, such as http://orders:80: in mode gateway the gateway has pods of its own. (In the application's pods: mode sidecar.)"
{{- end }}
{{- if and $v.redis.enabled $nodes }}
- "redis.enabled and config.redis.nodes exclude each other: use either nodes of the release's own or those that you name."
{{- end }}
{{- $many := or $v.autoscaling.enabled (gt (int $v.replicas) 1) }}
{{- if and $gateway $many (not $v.redis.enabled) (not $nodes) }}
- "More than one gateway, but no Redis by which they could share events: set redis.enabled, or name config.redis.nodes. For a trial without Redis: replicas: 1."
{{- end }}
{{- if $v.redis.enabled }}
{{- $n := int $v.redis.nodes }}
{{- if and (eq $n 1) (not $v.redis.allowSingleNode) }}
- "redis.nodes is 1: of three nodes one may fail, of one none. For a trial: redis.allowSingleNode: true."
{{- else if not (has $n (list 1 3 5 7)) }}
- {{ printf "redis.nodes is %d: votes need 3, 5 or 7 nodes." $n | quote }}
{{- end }}
{{- end }}
{{- if and $v.redis.enabled $v.redis.previousNodes }}
{{- if or (not (has (int $v.redis.previousNodes) (list 1 3 5 7))) (ge (int $v.redis.previousNodes) (int $v.redis.nodes)) }}
- {{ printf "redis.previousNodes is %d with redis.nodes %d: it is how many there were until now, 1, 3 or 5, and fewer. Nodes of the release's own are not taken away again." (int $v.redis.previousNodes) (int $v.redis.nodes) | quote }}
{{- end }}
{{- end }}
{{- if and $v.secrets.existingSecret $v.secrets.data }}
- "secrets.existingSecret and secrets.data exclude each other: keep the secrets in one place."
{{- end }}
{{- if and $v.serviceMonitor.enabled (not $gateway) }}
- "serviceMonitor is for mode gateway: sidecars are found by podMonitor."
{{- end }}
{{- if and $v.serviceMonitor.enabled $v.podMonitor.enabled }}
- "serviceMonitor and podMonitor would scrape every gateway twice: enable one of them."
{{- end }}
{{- if and $v.injection.enabled $gateway }}
- "injection is for mode sidecar: in mode gateway nothing is put into the application's pods."
{{- end }}
{{- if and $v.injection.enabled $v.secrets.items }}
- "secrets.items has no effect on injected sidecars: they take all keys of the Secret, under their own names."
{{- end }}
{{- if and $v.networkPolicy.enabled (not $gateway) (not $v.networkPolicy.app.from) }}
- "networkPolicy in mode sidecar isolates the application's pods as a whole: say in networkPolicy.app.from who else may reach the application, such as [{podSelector: {}}] for the whole namespace."
{{- end }}
{{- if and $v.queue.enabled $v.queue.existingSecret (dig "queue" "url" "" $config) }}
- "queue.existingSecret and config.queue.url exclude each other: say once where the queue is."
{{- end }}
{{- $async := list }}
{{- range $config.routes }}{{ if eq (.mode | default "sync") "async" }}{{ $async = append $async .name }}{{ end }}{{ end }}
{{- if and $async (not $v.queue.enabled) (not (dig "queue" "url" "" $config)) }}
- {{ printf "config.routes: %s has mode: async, but there is no queue: set queue.enabled, or name config.queue.url." (join ", " $async) | quote }}
{{- end }}
{{- if and $v.ledger.enabled (not $v.ledger.existingSecret) (not (dig "ledger" "url" "" $config)) }}
- "ledger.enabled: say in ledger.existingSecret which Secret has the URL of the PostgreSQL."
{{- end }}
{{- if and $v.ledger.existingSecret (dig "ledger" "url" "" $config) }}
- "ledger.existingSecret and config.ledger.url exclude each other: say once where the ledger is."
{{- end }}
{{- $alone := list }}
{{- range $config.routes }}{{ if eq (.onUnavailable | default "reject") "ledger" }}{{ $alone = append $alone .name }}{{ end }}{{ end }}
{{- if and $alone (not $v.ledger.enabled) (not (dig "ledger" "url" "" $config)) }}
- {{ printf "config.routes: %s has onUnavailable: ledger, but there is no ledger: set ledger.enabled, or name config.ledger.url." (join ", " $alone) | quote }}
{{- end }}
{{- end }}
