import { readFileSync } from 'node:fs'

/** Reads a text that stands in a file of its own. @param values what stands at its places `{name}` */
export const readTextFile = (file: URL, values: Record<string, string | number> = {}): string =>
  readFileSync(file, 'utf8')
    .trim()
    .replaceAll(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place))
