/**
 * What a collector reads: spans out of the protobuf that OTLP sends, by the field numbers of opentelemetry-proto
 * (`trace.proto`, `common.proto`). A reader of its own, so that what is sent is not judged by what sent it.
 */

export interface ReadSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentId: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** 2: it failed. */
  readonly status: number;
  readonly durationNs: bigint;
  readonly resource: Readonly<Record<string, string | number | boolean>>;
}

export function readSpans(request: Buffer): ReadSpan[] {
  return all(fields(request), 1).flatMap((ofResource) => {
    const within = fields(ofResource);
    const resource = attributes(all(fields(first(within, 1)), 1));
    return all(within, 2).flatMap((ofScope) => all(fields(ofScope), 2).map((span) => readSpan(fields(span), resource)));
  });
}

function readSpan(span: Fields, resource: ReadSpan['resource']): ReadSpan {
  return {
    traceId: first(span, 1).toString('hex'),
    spanId: first(span, 2).toString('hex'),
    parentId: first(span, 4).toString('hex'),
    name: first(span, 5).toString(),
    kind: number(span, 6),
    attributes: attributes(all(span, 9)),
    links: all(span, 13).map((link) => ({
      traceId: first(fields(link), 1).toString('hex'),
      spanId: first(fields(link), 2).toString('hex'),
    })),
    status: number(fields(first(span, 15)), 3),
    durationNs: first(span, 8).readBigUInt64LE() - first(span, 7).readBigUInt64LE(),
    resource,
  };
}

function attributes(pairs: readonly Buffer[]): Record<string, string | number | boolean> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const value = fields(first(fields(pair), 2));
      const read = value.has(1)
        ? first(value, 1).toString()
        : value.has(2)
          ? number(value, 2) === 1
          : value.has(4)
            ? first(value, 4).readDoubleLE()
            : number(value, 3);
      return [first(fields(pair), 1).toString(), read];
    }),
  );
}

/** By field number, in order; numbers of variable length as 8 bytes. */
type Fields = ReadonlyMap<number, readonly Buffer[]>;

const all = (of: Fields, field: number): readonly Buffer[] => of.get(field) ?? [];
const first = (of: Fields, field: number): Buffer => all(of, field)[0] ?? Buffer.alloc(0);
const number = (of: Fields, field: number): number => Number(of.get(field)?.[0]?.readBigUInt64LE() ?? 0n);

function fields(message: Buffer): Fields {
  const found = new Map<number, Buffer[]>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Buffer => message.subarray(at, (at += length));
  const value = (wire: number): Buffer => {
    if (wire === 1) return take(8);
    if (wire === 5) return take(4);
    if (wire === 2) return take(Number(varint()));
    const whole = Buffer.alloc(8);
    whole.writeBigUInt64LE(varint());
    return whole;
  };
  while (at < message.length) {
    const key = Number(varint());
    found.set(key >> 3, [...(found.get(key >> 3) ?? []), value(key & 7)]);
  }
  return found;
}
