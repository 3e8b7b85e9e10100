import { createHash } from 'node:crypto'
import type { ExportLine } from '#api/contract/generated/types.ts'
import { vaultField } from '#scripts/clients/import/formats/okf.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'

/** A document of a bundle, by its path in it. */
export type OkfDocument = { path: string; text: string }

const kinds = {
  1: { type: 'Memory', folder: 'memories' },
  2: { type: 'Reflection', folder: 'reflections' },
  3: { type: 'High-level reflection', folder: 'high-level-reflections' },
} as const

const titleCharactersMax = 80

/** Characters of a session id that any file system takes. */
const plainName = /^(?!\.)[A-Za-z0-9._-]{1,64}$/

/**
 * Writes a memory as a document of Open Knowledge Format. The same memory has the same path and bytes every time:
 * its kind or session, its month, its id.
 *
 * @throws Refusal `upstream` for an id that is no UUID
 * @param paths of documents written before, by the id of their memory; what a reflection covers is linked
 */
export function toOkfDocument(line: ExportLine, paths: ReadonlyMap<string, string>): OkfDocument {
  const { content, ...fields } = line
  // It becomes the name of a file.
  if (!isUuid(line.id)) throw new Refusal('upstream', 'The service sent a memory whose id is none')
  const at = new Date(line.timestamp).toISOString()
  const sources = (line.sources ?? []).flatMap(id => {
    const resource = paths.get(id)
    return resource === undefined ? [] : [{ id, resource: `/${resource}` }]
  })
  const frontMatter = {
    type: kinds[line.tier].type,
    title: titleOf(content),
    generated: { by: actorOf(line), at },
    ...(sources.length > 0 && { sources }),
    [vaultField]: fields,
  }
  const head = Object.entries(frontMatter).map(([name, value]) => `${name}: ${toYaml(value)}`)
  return {
    path: `${folderOf(line)}/${at.slice(0, 7)}/${line.id}.md`,
    text: `---\n${head.join('\n')}\n---\n\n${content}\n`,
  }
}

/** Writes a value as JSON that is YAML too: characters that end a line of YAML are escaped. */
const toYaml = (value: unknown): string =>
  JSON.stringify(value).replaceAll(
    /[\u007F-\u009F\u2028\u2029\uFEFF]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

function folderOf({ tier, session_id: session }: ExportLine): string {
  if (tier !== 1 || session === null) return kinds[tier].folder
  const name = plainName.test(session)
    ? session
    : `~${createHash('sha256').update(session).digest('hex').slice(0, 16)}`
  return `sessions/${name}`
}

/** Returns the first words, on one line. */
function titleOf(content: string): string {
  const [first = ''] = content.trim().split(/[\r\n\u2028\u2029]/, 1)
  const characters = Array.from(first.toWellFormed())
  return characters.length <= titleCharactersMax
    ? first
    : `${characters
        .slice(0, titleCharactersMax - 1)
        .join('')
        .trimEnd()}…`
}

/** Names the author of a memory as the format names actors. */
function actorOf({ tier, role, name }: ExportLine): string {
  if (tier !== 1) return 'process:consolidation'
  return role === 'user' ? `human:${name ?? 'user'}` : `process:${role}`
}

/** `index.md` of the root: which folders there are, and how many memories each has. */
export function toOkfIndex(paths: Iterable<string>): OkfDocument {
  const counts = new Map<string, number>()
  for (const path of paths) {
    const folder = path.slice(0, path.indexOf('/'))
    counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  const entries = [...counts].toSorted(([one], [other]) => (one < other ? -1 : 1))
  const list = entries.map(
    ([folder, count]) => `* [${folder}](${folder}/) - ${count.toLocaleString('en')} documents\n`,
  )
  return { path: 'index.md', text: `---\nokf_version: "0.2"\n---\n\n# Vault\n\n${list.join('')}` }
}
