/** The known name that a misspelt one was probably meant to be; undefined when none is close. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase();
  // One slip in three letters: `pasword` finds `password`, `timeoutMS` finds `timeout`, `mode` finds nothing like `name`.
  let closest: string | undefined;
  let least = Math.floor(wanted.length / 3) + 0.5;
  for (const candidate of known) {
    const slips = distance(wanted, candidate.toLowerCase());
    if (slips < least) [closest, least] = [candidate, slips];
  }
  return closest;
}

/** Optimal string alignment: the fewest letters to insert, delete, replace or swap with their neighbour. */
function distance(a: string, b: string): number {
  const rows: number[][] = [];
  const at = (i: number, j: number) => (i === 0 || j === 0 ? i + j : rows[i - 1]![j - 1]!);
  for (let i = 1; i <= a.length; i++) {
    const row: number[] = [];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : Infinity;
      row.push(Math.min(replaced, swapped, at(i - 1, j) + 1, at(i, j - 1) + 1));
    }
  }
  return at(a.length, b.length);
}
