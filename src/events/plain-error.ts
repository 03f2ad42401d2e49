/**
 * An error as a log may show it. What else hangs on errors of libraries is left out: the arguments of a command to
 * Redis, with the password among them; the row of a statement; and parsers quote what they could not read, which may be
 * the body of a delivery.
 */
export interface PlainError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  /** Where it was thrown. */
  readonly stack: string;
  readonly cause?: PlainError;
}

export function plainError(error: unknown, depth = 0): PlainError {
  if (!(error instanceof Error)) return { type: typeof error, message: 'not an error', stack: '' };
  const { name, message, stack = '', cause } = error;
  const { code } = error as NodeJS.ErrnoException;
  return {
    type: name,
    message: error instanceof SyntaxError ? 'something could not be read' : message,
    ...(typeof code === 'string' && { code }),
    stack: stack
      .split('\n')
      .filter((line) => /^\s+at /.test(line))
      .join('\n'),
    ...(cause instanceof Error && depth < 3 && { cause: plainError(cause, depth + 1) }),
  };
}
