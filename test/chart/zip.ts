import { inflateRawSync } from 'node:zlib';

/**
 * The entry `name` of a ZIP archive, as far as archives are simple: one disk, stored or deflated, below 4 GiB
 * (PKWARE APPNOTE 4.3.7, 4.3.12, 4.3.16). Undefined when there is no such entry.
 */
export function unzipOne(archive: Buffer, name: string): Buffer | undefined {
  const end = archive.lastIndexOf(Buffer.from('PK\x05\x06'));
  const count = archive.readUInt16LE(end + 10);
  let at = archive.readUInt32LE(end + 16);
  for (let n = 0; n < count; n += 1) {
    const nameLength = archive.readUInt16LE(at + 28);
    if (archive.toString('utf8', at + 46, at + 46 + nameLength) === name) {
      const local = archive.readUInt32LE(at + 42);
      const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
      const data = archive.subarray(start, start + archive.readUInt32LE(at + 20));
      return archive.readUInt16LE(at + 10) === 0 ? data : inflateRawSync(data);
    }
    at += 46 + nameLength + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  return undefined;
}
