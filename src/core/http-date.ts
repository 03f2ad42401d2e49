/** Dates of HTTP (RFC 9110 5.6.7): the form to send, and the two that must still be understood. */

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAY_MS = 86_400_000;
const FORMS = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  /^[a-z]{3}, (?<day>\d{2}) (?<month>[a-z]{3}) (?<year>\d{4}) (?<h>\d{2}):(?<m>\d{2}):(?<s>\d{2}) gmt$/,
  // Sunday, 06-Nov-94 08:49:37 GMT
  /^[a-z]{6,9}, (?<day>\d{2})-(?<month>[a-z]{3})-(?<year>\d{2}) (?<h>\d{2}):(?<m>\d{2}):(?<s>\d{2}) gmt$/,
  // Sun Nov  6 08:49:37 1994
  /^[a-z]{3} (?<month>[a-z]{3}) (?<day>[ \d]\d) (?<h>\d{2}):(?<m>\d{2}):(?<s>\d{2}) (?<year>\d{4})$/,
];

/** Epoch milliseconds; undefined for anything else. A year of two digits is read as one of 1970 to 2069. */
export function httpDate(text: string): number | undefined {
  const found = FORMS.map((form) => form.exec(text.trim().toLowerCase())?.groups).find((groups) => groups);
  if (!found) return undefined;
  const [day, year, h, m, s] = ['day', 'year', 'h', 'm', 's'].map((name) => Number(found[name]));
  const month = MONTHS.indexOf(found['month']!) + 1;
  const full = year! >= 100 ? year! : year! + (year! < 70 ? 2000 : 1900);
  if (month === 0 || day! < 1 || day! > 31 || h! > 23 || m! > 59 || s! > 60) return undefined;
  return daysFrom1970(full, month, day!) * DAY_MS + (h! * 3600 + m! * 60 + s!) * 1000;
}

/** Years begin in March, so that the leap day is their last. */
function daysFrom1970(year: number, month: number, day: number): number {
  const y = month > 2 ? year : year - 1;
  const sinceMarch = month > 2 ? month - 3 : month + 9;
  const leapDays = Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400);
  return y * 365 + leapDays + Math.floor((153 * sinceMarch + 2) / 5) + day - 1 - 719_468;
}
