/**
 * Secrets as Standard Webhooks and Svix write them: base64, with or without `whsec_` before it.
 * The specification wants 24 to 64 bytes, but Svix's own examples have 18: only an empty key is refused.
 */
export function decodeWhsec(text: string): Buffer | string {
  if (text.startsWith('whpk_') || text.startsWith('whsk_'))
    return 'is an asymmetric key, which is not supported; use the whsec_ secret';
  const base64 = text.startsWith('whsec_') ? text.slice('whsec_'.length) : text;
  const key = Buffer.from(base64, 'base64');
  // Buffer.from skips what it does not know: only a text that comes out again the same was base64.
  if (key.length === 0 || withoutPadding(key.toString('base64')) !== withoutPadding(base64))
    return 'is not base64 after whsec_';
  if (key.toString('latin1').startsWith('whsec_')) return 'is base64 of a whsec_ secret: give the secret itself';
  return key;
}

const withoutPadding = (base64: string): string => base64.replace(/={0,2}$/, '');
