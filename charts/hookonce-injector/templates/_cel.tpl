{{/*
A value as a CEL literal of Kubernetes' admission language. Called with (dict "value" <any> "path" "Object.spec.volumes").

A mapping is written as an object of the type that its path names, `Object.spec.volumes{name: "x"}`, for maps of one
type are the only ones that this CEL has; entries of a list have the path of the list. Texts that start with "cel:"
are expressions and taken as they are.
*/}}
{{- define "hookonce-injector.cel" -}}
{{- $path := .path }}
{{- $field := splitList "." $path | last }}
{{- if kindIs "map" .value }}
{{- $isMap := has $field (list "requests" "limits") }}
{{- $entries := list }}
{{- range $name, $value := .value }}
{{- $key := ternary (quote $name) $name $isMap }}
{{- $value = ternary (toString $value) $value $isMap }}
{{- $entries = append $entries (printf "%s: %s" $key (include "hookonce-injector.cel" (dict "value" $value "path" (printf "%s.%s" $path $name)))) }}
{{- end }}
{{- ternary "" $path $isMap }}{ {{- join ", " $entries -}} }
{{- else if kindIs "slice" .value }}
{{- $entries := list }}
{{- range .value }}
{{- $entries = append $entries (include "hookonce-injector.cel" (dict "value" . "path" $path)) }}
{{- end }}[{{ join ", " $entries }}]
{{- else if kindIs "string" .value }}
{{- if hasPrefix "cel:" .value }}{{ trimPrefix "cel:" .value }}{{ else }}{{ toJson .value }}{{ end }}
{{- else if kindIs "float64" .value }}
{{- int64 .value }}
{{- else }}
{{- .value }}
{{- end }}
{{- end }}
