{{- define "hookonce-injector.lib" -}}
{{- $config := dict "listen" (dict "port" .Values.ports.listen) "admin" (dict "port" .Values.ports.admin) }}
{{- merge (dict "config" $config) .Values | toYaml }}
{{- end }}

{{/* The container of hookonce-lib, the very one that the other ways of installing have. */}}
{{- define "hookonce-injector.container" -}}
{{- $lib := dict "values" (include "hookonce-injector.lib" . | fromYaml) "ctx" . }}
{{- $container := include "hookonce-lib.initContainers" $lib | fromYamlArray | first }}
{{- include "hookonce-injector.cel" (dict "value" $container "path" "Object.spec.initContainers") }}
{{- end }}

{{/*
The volumes of hookonce-lib, with names that only the configuration knows. What lists of Secrets have in common is
written by hookonce-lib too; whether there is one is known when a pod comes.
*/}}
{{- define "hookonce-injector.configVolume" -}}
{{- $values := dict "fullnameOverride" "cel:params.data.config" }}
{{- $volume := include "hookonce-lib.volumes" (dict "values" $values "ctx" .) | fromYamlArray | first }}
{{- include "hookonce-injector.cel" (dict "value" $volume "path" "Object.spec.volumes") }}
{{- end }}

{{- define "hookonce-injector.secretsVolume" -}}
{{- $values := dict
  "secrets" (dict "existingSecret" "cel:params.data.secret")
  "redis" (dict
    "auth" (dict "existingSecret" "cel:params.data.redisSecret" "passwordKey" "cel:params.data.redisPasswordKey")
    "tls" (dict "existingSecret" "cel:params.data.redisTlsSecret" "caKey" "cel:params.data.redisCaKey")) }}
{{- $volume := include "hookonce-lib.secretsVolume" (dict "values" $values "ctx" .) | fromYamlArray | first }}
{{- $sources := list }}
{{- range $volume.projected.sources }}
{{- $name := trimPrefix "cel:params.data." .secret.name }}
{{- if eq $name "secret" }}
{{- $_ := set .secret "optional" "cel:params.data.secretOptional == \"true\"" }}
{{- end }}
{{- $source := include "hookonce-injector.cel" (dict "value" (list .) "path" "Object.spec.volumes.projected.sources") }}
{{- $sources = append $sources (ternary $source (printf "(%q in params.data ? %s : [])" $name $source) (eq $name "secret")) }}
{{- end }}
{{- $_ := set $volume.projected "sources" (printf "cel:%s" (join " + " $sources)) }}
{{- include "hookonce-injector.cel" (dict "value" $volume "path" "Object.spec.volumes") }}
{{- end }}
