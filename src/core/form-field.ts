/**
 * Values of one field of an `application/x-www-form-urlencoded` body, in order. The bytes alone decide,
 * whatever the content type says; a body that is no form simply has no such field.
 */
export function formField(body: Buffer, field: string): string[] {
  // The leading & is an empty pair: without it a question mark at the start would be taken off.
  return new URLSearchParams(`&${body.toString('utf8')}`).getAll(field);
}
