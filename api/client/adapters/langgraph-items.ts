import { toTexts, type Fields, type LongText, type TextRow } from './long-texts.ts'

/** An item of LangGraph's store. */
export type Item = {
  namespace: string[]
  key: string
  value: Fields
  createdAt: Date
  updatedAt: Date
}

/** The most labels of a namespace: metadata has 16 fields. */
export const depthMax = 10

/** The longest key of a field of metadata. */
const keyCharactersMax = 256

/** A key as a field of metadata: the hash of one that is too long. */
export async function keyField(key: string): Promise<string> {
  if (key.length <= keyCharactersMax || Array.from(key).length <= keyCharactersMax) return key
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(key))
  const bytes = Array.from(new Uint8Array(hash), byte => byte.toString(16).padStart(2, '0'))
  return `sha256:${bytes.join('')}`
}

/**
 * The metadata of an item with this field of a key, or of all items below a namespace: `lg_0` and so on its
 * namespace, `lg_depth` their number, `lg_key`.
 */
export function treeFilter(namespace: readonly string[], field?: string): Fields {
  const labels = Object.fromEntries(namespace.map((label, at) => [`lg_${at}`, label]))
  if (field !== undefined) return { ...labels, lg_depth: namespace.length, lg_key: field }
  const depths = Array.from({ length: depthMax }, (_, at) => at + 1)
  return { ...labels, lg_depth: depths.filter(depth => depth >= namespace.length) }
}

export const readNamespace = (metadata: Fields): string[] =>
  Array.from({ length: Number(metadata.lg_depth) }, (_, at) => String(metadata[`lg_${at}`]))

/**
 * An item as a text: the texts in its value are the words, its JSON is kept beside them; a key that is too long for
 * its field stands before the value.
 */
export function toItemText(
  { namespace, key, value }: Pick<Item, 'namespace' | 'key' | 'value'>,
  field: string,
  known?: LongText,
): LongText {
  const data = JSON.stringify(field === key ? value : [key, value])
  const text = textsIn(value).join('\n') || JSON.stringify(value)
  return { ...known, metadata: treeFilter(namespace, field), text, data }
}

/** What a person or a model would read of a value, in its order. */
const textsIn = (value: unknown): string[] =>
  typeof value === 'string'
    ? [value]
    : typeof value === 'object' && value !== null
      ? Object.values(value).flatMap(textsIn)
      : []

export const toItemTexts = (rows: readonly TextRow[]) => toTexts('lg_', rows)

/** The items whose parts are all there and are JSON: a memory of one may have been edited. */
export function toItems(rows: readonly TextRow[]): Item[] {
  return toItemTexts(rows).flatMap(({ metadata, text, data, createdAt, updatedAt }) => {
    const read = readValue(data ?? text)
    if (read === undefined) return []
    const [key, value] = Array.isArray(read) ? read : [String(metadata.lg_key), read]
    const [created, updated] = [new Date(createdAt), new Date(updatedAt)]
    const namespace = readNamespace(metadata)
    return [{ namespace, key, value, createdAt: created, updatedAt: updated }]
  })
}

function readValue(text: string): Fields | [string, Fields] | undefined {
  try {
    return JSON.parse(text) as Fields | [string, Fields]
  } catch {
    return undefined
  }
}
