/**
 * Evaluates the part of CEL in which the injector's patch is written: literals, objects, lists, `+`, `?:`, `==`, `in`
 * and has(). Objects become plain ones; one whose type is not that of its place is an error.
 */
import { parse } from '@bufbuild/cel';

type Env = Readonly<Record<string, unknown>>;
type Parsed = NonNullable<ReturnType<typeof parse>['expr']>;

const typeOf = Symbol('type');

/** Throws for an expression that is not well formed. */
export function evaluate(expression: string, env: Env): unknown {
  return valueOf(parse(expression).expr, env);
}

function valueOf({ exprKind: kind }: Parsed, env: Env): unknown {
  switch (kind.case) {
    case 'constExpr': {
      const constant = kind.value.constantKind;
      if (constant.case === 'int64Value') return Number(constant.value);
      if (constant.case === 'stringValue' || constant.case === 'boolValue') return constant.value;
      throw new Error(`not known here: ${constant.case}`);
    }
    case 'identExpr':
      return env[kind.value.name];
    case 'selectExpr': {
      const from = valueOf(kind.value.operand!, env) as Record<string, unknown>;
      if (kind.value.testOnly) return kind.value.field in from;
      if (!(kind.value.field in from)) throw new Error(`no such key: ${kind.value.field}`);
      return from[kind.value.field];
    }
    case 'listExpr':
      return kind.value.elements.map((element) => valueOf(element, env));
    case 'structExpr':
      return objectOf(kind.value.messageName, kind.value.entries, env);
    case 'callExpr':
      return called(kind.value.function, kind.value.args, env);
    case 'comprehensionExpr':
    case undefined:
      throw new Error(`not known here: ${kind.case}`);
  }
}

type Entries = Extract<Parsed['exprKind'], { case: 'structExpr' }>['value']['entries'];

function objectOf(type: string, entries: Entries, env: Env): unknown {
  const fields = entries.map(({ keyKind, value }): [string, unknown] => {
    const key = keyKind.case === 'mapKey' ? String(valueOf(keyKind.value, env)) : keyKind.value!;
    const found = valueOf(value!, env);
    for (const one of [found].flat()) {
      const inner = (one as { [typeOf]?: string } | null)?.[typeOf];
      const expected = type === 'JSONPatch' ? /^Object\.spec\.\w+$/ : new RegExp(`^${type}\\.${key}$`);
      if (inner !== undefined && !expected.test(inner)) throw new Error(`${inner} as ${type}.${key}`);
    }
    return [key, found];
  });
  const object = Object.fromEntries(fields);
  if (type !== '') Object.defineProperty(object, typeOf, { value: type });
  return object;
}

function called(name: string, args: readonly Parsed[], env: Env): unknown {
  const at = (i: number) => valueOf(args[i]!, env);
  switch (name) {
    case '_?_:_':
      return at(0) === true ? at(1) : at(2);
    case '_+_': {
      const [a, b] = [at(0), at(1)];
      return Array.isArray(a) ? [...a, ...(b as unknown[])] : (a as string) + (b as string);
    }
    case '_==_':
      return at(0) === at(1);
    case '@in':
      return (at(0) as string) in (at(1) as object);
    default:
      throw new Error(`not known here: ${name}`);
  }
}
