import { toLines as toPieces } from '#api/client/adapters/long-texts.ts'
import type { Format } from '#api/import/formats/format.ts'
import { isHidden, readText } from '#api/import/formats/text-files.ts'

/** The path of a file as the tool names it, below `/memories`, wherever that folder lies. */
function toolPath(name: string): string {
  const segments = name.split('/')
  return `/memories/${segments.slice(segments.lastIndexOf('memories') + 1).join('/')}`
}

/** The time of a file that has none, the same for each reading of it. */
const unknownTime = Date.now()
const pathCharactersMax = 256

/**
 * The folder in which the SDKs keep the files of Claude's memory tool (`memory_20250818`). The files come as those that
 * `vaultMemory` writes, so that the tool goes on with them.
 */
export const claudeMemory: Format = {
  product: "Claude's memory tool",
  file: 'the folder that has memories in it, that folder itself, or a zip of it',
  missing: 'empty folders and earlier wordings of a file; its time is that of its last change',
  isExportFile: name =>
    !isHidden(name) && /(?:^|\/)[^/.]+$|\.(?:md|txt|json|xml|ya?ml|csv)$/i.test(name),
  recognizes: () => false,
  recognizesText: name => /(?:^|\/)memories\//.test(name) && claudeMemory.isExportFile(name),
  async *read(files, losses, onStranger) {
    const seen = new Set<string>()
    for (const file of files) {
      const text = await readText(file)
      const path = toolPath(file.name)
      if (text === undefined) losses.add('files of more than 8 MiB')
      else if (text.includes('\0')) onStranger(file.name)
      else if (path.length > pathCharactersMax) losses.add('files with paths over 256 characters')
      else {
        const metadata = {
          file_tree: 'memories',
          file_path: path,
          source: 'claude-memory',
          speaker: 'Claude',
          origin: 'import',
        }
        const linesAt = (at: number) => toPieces('file_', { metadata, text }, at, at)
        const keyOf = ({ content, timestamp }: { content: string; timestamp: number }) =>
          `${timestamp} ${content}`
        // The service takes the same words of the same millisecond once.
        let at = Math.trunc(file.modified ?? unknownTime)
        while (linesAt(at).some(line => seen.has(keyOf(line)))) at++
        for (const line of linesAt(at)) {
          seen.add(keyOf(line))
          const timestamp = new Date(line.timestamp).toISOString()
          yield { kind: 'upload', timestamp, text: JSON.stringify({ ...line, timestamp }) }
        }
      }
    }
  },
}
