import { readZip, type ArchivedFile } from '#api/import/archive.ts'
import {
  documentBounds,
  type DocumentBytes,
  type Paragraph,
} from '#api/import/documents/document.ts'
import { readXml, type ElementHandler } from '#api/import/documents/markup.ts'
import { mayBePicture } from '#api/import/documents/pictures.ts'
import { Refusal } from '#shared/core/errors.ts'

/** The parts of a document of Office (ECMA-376): a zip archive of XML. */
export type Package = {
  has(path: string): boolean
  /** The paths that match, in the order of the archive. */
  paths(pattern: RegExp): string[]
  /** Reads a part in one pass; one that is not there has no elements. */
  read(path: string, handler: ElementHandler): Promise<void>
  /** The targets of the relationships of a part, by their ids. */
  targetsOf(path: string): Promise<Map<string, string>>
  /** The pictures that a part names by the ids of its relationships, those alone that are taken. */
  picturesOf(path: string, drawn: readonly DrawnPicture[]): Promise<Paragraph[]>
}

/** The id of a relationship to a picture, and where it stands. */
export type DrawnPicture = Pick<Paragraph, 'page' | 'section'> & { id: string | undefined }

/** The id by which an element shows a picture, of DrawingML or of VML. */
export const drawnId = (
  element: string,
  attributes: Readonly<Record<string, string>>,
): string | undefined =>
  element === 'blip'
    ? attributes['r:embed']
    : element === 'imagedata'
      ? attributes['r:id']
      : undefined

/** @throws Refusal `invalid` for an archive that is damaged; while a part is read, also for what grows without bound */
export async function openPackage({ bytes, name, pictures }: DocumentBytes): Promise<Package> {
  let unpacked = 0
  const guard = async function* (file: ArchivedFile): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of file.open()) {
        unpacked += chunk.length
        if (unpacked > documentBounds.unpackedBytes) throw tooLarge(name)
        yield chunk
      }
    } catch (error) {
      throw error instanceof Refusal ? error : damaged(name, error)
    }
  }
  const listed = await readZip(new Blob([bytes])).catch((error: unknown) => {
    throw damaged(name, error)
  })
  const files = new Map(listed.map(file => [file.name, file]))
  const read = async (path: string, handler: ElementHandler): Promise<void> => {
    const file = files.get(path)
    if (file) await readXml(guard(file), handler)
  }
  const targetsOf = async (path: string): Promise<Map<string, string>> => {
    const targets = new Map<string, string>()
    const slash = path.lastIndexOf('/')
    const folder = path.slice(0, slash + 1)
    await read(`${folder}_rels/${path.slice(slash + 1)}.rels`, {
      open(element, { Id = '', Target = '' }) {
        if (element === 'Relationship') targets.set(Id, resolve(folder, Target))
      },
    })
    return targets
  }
  return {
    has: path => files.has(path),
    paths: pattern => [...files.keys()].filter(path => pattern.test(path)),
    read,
    targetsOf,
    async picturesOf(path, drawn) {
      if (!pictures || drawn.length === 0) return []
      const targets = await targetsOf(path)
      const taken: Paragraph[] = []
      for (const { id = '', ...place } of drawn) {
        const file = files.get(targets.get(id) ?? '')
        if (!file || !mayBePicture(file) || pictures.isFull) continue
        // The text counts, also where a picture is damaged.
        const chunks = await Array.fromAsync(guard(file)).catch(() => [])
        const picture = pictures.take(Buffer.concat(chunks))
        if (picture) taken.push({ text: '', ...place, picture })
      }
      return taken
    },
  }
}

/** A target is absolute, or relative to the folder of the part that names it. */
const resolve = (folder: string, target: string): string =>
  new URL(target, `http://part/${folder}`).pathname.slice(1)

const damaged = (name: string, error: unknown): Refusal =>
  new Refusal(
    'invalid',
    `${name} is no document that can be read: ${(error as Error).message}`,
    'Save it again',
  )

const tooLarge = (name: string): Refusal =>
  new Refusal(
    'too-large',
    `${name} would be more than ${documentBounds.unpackedBytes / 1024 / 1024} MiB unpacked`,
    'Divide it, or save the part that matters',
  )
