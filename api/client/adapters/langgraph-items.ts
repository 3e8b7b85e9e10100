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
/** Characters of JSON in one memory: with its first line well below the 512 tokens of a chunk. */
const partLength = 320

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
  const characters = Array.from(JSON.stringify(value))
  const parts = Math.max(1, Math.ceil(characters.length / partLength))
  const metadata = {
    ...treeFilter(namespace, key),
    lg_at: at,
    lg_since: known?.createdAt.getTime() ?? at,
    lg_parts: parts,
  }
  return Array.from({ length: parts }, (_, part) => {
    const text = characters.slice(part * partLength, (part + 1) * partLength).join('')
    const head = `${[...namespace, key].join('/')} ${at.toString(36)}.${part}`
    const content = `${head}\n[${text}]`
    const line = {
      content,
      role: 'assistant',
      timestamp: at,
      metadata: { ...metadata, lg_part: part },
    }
    return `${JSON.stringify(line)}\n`
  }).join('')
}

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
    if (parts.length < Number(metadata.lg_parts)) continue
    const ordered = [...parts].sort((a, b) => a.metadata.lg_part - b.metadata.lg_part)
    const namespace = readNamespace(metadata)
    const item: Item = {
      namespace,
      key: String(metadata.lg_key),
      value: JSON.parse(ordered.map(({ text }) => readPart(text)).join('')) as Fields,
      createdAt: new Date(Number(metadata.lg_since)),
      updatedAt: new Date(Number(metadata.lg_at)),
    }
    const name = JSON.stringify([namespace, item.key])
    const known = latest.get(name)
    if (!known || known.updatedAt < item.updatedAt) latest.set(name, item)
  }
  return [...latest.values()].sort((a, b) => b.updatedAt.getTime() - a.updatedAt.getTime())
}

const readPart = (text: string): string => text.slice(text.indexOf('\n[') + 2, -1)
