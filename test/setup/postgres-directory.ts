/** Debian keeps PostgreSQL's programs apart from the path, one directory per version. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const INSTALLED = '/usr/lib/postgresql';

/** Where `initdb` and `postgres` are, of the newest version; undefined where there is none. */
export function postgresDirectory(): string | undefined {
  const versions = existsSync(INSTALLED) ? readdirSync(INSTALLED).sort((a, b) => Number(b) - Number(a)) : [];
  const onPath = (process.env['PATH'] ?? '').split(':');
  return [...versions.map((version) => join(INSTALLED, version, 'bin')), ...onPath].find(
    (directory) => existsSync(join(directory, 'initdb')) && existsSync(join(directory, 'postgres')),
  );
}
