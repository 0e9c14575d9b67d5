/** The name, or the name with the first number from 2 on that makes it unused; never longer than `maxLength`. */
export function unusedName(name: string, maxLength: number, isUsed: (name: string) => boolean): string {
  let unused = name;
  for (let n = 2; isUsed(unused); n++) unused = `${name.slice(0, maxLength - 1 - String(n).length)}_${n}`;
  return unused;
}
