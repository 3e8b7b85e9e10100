/** Any JSON object. */
// oxlint-disable-next-line typescript/no-explicit-any -- as LangGraph has it
export type Fields = Record<string, any>

/** An item of LangGraph's store. */
export type Item = {
  namespace: string[]
  key: string
  value: Fields
  createdAt: Date
  updatedAt: Date
}

/** A memory that is an item or a part of one. */
export type ItemRow = { id: string; text: string; metadata: Fields }

/** The most labels of a namespace: metadata has 16 fields. */
export const depthMax = 10
/** UTF-8 bytes, of which a token has at least one: a memory of both stays below the 512 tokens of a chunk. */
const partBytesMax = 320
const pathBytesMax = 144

/**
 * The metadata of an item with this key, or of all items below a namespace.
 *
 * Metadata of an item: `lg_0` and so on its namespace, `lg_depth` their number, `lg_key`, `lg_at` and
 * `lg_since` when it was written last and first, `lg_part` and `lg_parts`.
 */
export function treeFilter(namespace: readonly string[], key?: string): Fields {
  const labels = Object.fromEntries(namespace.map((label, at) => [`lg_${at}`, label]))
  if (key !== undefined) return { ...labels, lg_depth: namespace.length, lg_key: key }
  const depths = Array.from({ length: depthMax }, (_, at) => at + 1)
  return { ...labels, lg_depth: depths.filter(depth => depth >= namespace.length) }
}

export const readNamespace = (metadata: Fields): string[] =>
  Array.from({ length: Number(metadata.lg_depth) }, (_, at) => String(metadata[`lg_${at}`]))

/** An item as lines to upload. Each text has a head that no other has, so that none is left out as known. */
export function toLines(
  item: Pick<Item, 'namespace' | 'key' | 'value'> & { known?: Item | undefined },
): string {
  const { namespace, key, value, known } = item
  const at = Math.max(Date.now(), (known?.updatedAt.getTime() ?? 0) + 1)
  const parts = splitText(JSON.stringify(value), partBytesMax)
  const metadata = {
    ...treeFilter(namespace, key),
    // With a fraction: another process may put this key in the same millisecond.
    lg_at: at + Math.random(),
    lg_since: known?.createdAt.getTime() ?? at,
    lg_parts: parts.length,
  }
  const path = cutPath([...namespace, key].join('/'))
  const wording = at.toString(36) + Math.random().toString(36).slice(2, 10)
  return parts
    .map((text, part) => {
      const content = `${path} ${wording}.${part}\n[${text}]`
      const line = {
        content,
        role: 'assistant',
        timestamp: at,
        metadata: { ...metadata, lg_part: part },
      }
      return `${JSON.stringify(line)}\n`
    })
    .join('')
}

/** Pieces of a text, in order, none longer than so many UTF-8 bytes; at least one. */
function splitText(text: string, bytesMax: number): string[] {
  const pieces: string[] = []
  let [piece, bytes] = ['', 0]
  for (const character of text) {
    const size = byteLength(character)
    if (bytes + size > bytesMax) {
      pieces.push(piece)
      ;[piece, bytes] = ['', 0]
    }
    piece += character
    bytes += size
  }
  return [...pieces, piece]
}

/** The path of an item on one line, without its beginning where it is long: metadata has it whole. */
function cutPath(path: string): string {
  const line = path.replace(/\s+/g, ' ')
  if (byteLength(line) <= pathBytesMax) return line
  const reversed = Array.from(line).reverse().join('')
  return Array.from(splitText(reversed, pathBytesMax)[0]!).reverse().join('')
}

const encoder = new TextEncoder()
const byteLength = (text: string): number => encoder.encode(text).length

/** The items whose parts are all there, in their latest wording; the one written last comes first. */
export function toItems(rows: readonly ItemRow[]): Item[] {
  const wordings = new Map<string, ItemRow[]>()
  for (const row of rows) {
    const { lg_key: key, lg_at: at } = row.metadata
    const name = JSON.stringify([readNamespace(row.metadata), key, at])
    wordings.set(name, [...(wordings.get(name) ?? []), row])
  }
  const latest = new Map<string, Item>()
  for (const parts of wordings.values()) {
    const { metadata } = parts[0]!
    const value = parts.length === Number(metadata.lg_parts) ? readValue(parts) : undefined
    if (value === undefined) continue
    const namespace = readNamespace(metadata)
    const item: Item = {
      namespace,
      key: String(metadata.lg_key),
      value,
      createdAt: new Date(Number(metadata.lg_since)),
      updatedAt: new Date(Number(metadata.lg_at)),
    }
    const name = JSON.stringify([namespace, item.key])
    const known = latest.get(name)
    if (!known || known.updatedAt < item.updatedAt) latest.set(name, item)
  }
  return [...latest.values()].sort((a, b) => b.updatedAt.getTime() - a.updatedAt.getTime())
}

/** The value of an item; undefined when one of its memories was edited, so that the parts are no JSON. */
function readValue(parts: readonly ItemRow[]): Fields | undefined {
  const ordered = [...parts].sort((a, b) => a.metadata.lg_part - b.metadata.lg_part)
  try {
    return JSON.parse(ordered.map(({ text }) => readPart(text)).join('')) as Fields
  } catch {
    return undefined
  }
}

const readPart = (text: string): string => text.slice(text.indexOf('\n[') + 2, -1)
