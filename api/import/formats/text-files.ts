import type { ExportFile } from '#api/import/export-files.ts'

/** The largest file of text that is read. */
const fileBytesMax = 8 * 1024 * 1024

/** Returns the text of a file; undefined for one of more than 8 MiB. */
export async function readText(file: ExportFile): Promise<string | undefined> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of file.open()) {
    bytes += chunk.length
    if (bytes > fileBytesMax) return undefined
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

/** Whether a path has a folder or file that belongs to a program: `.obsidian`, `.git`, `.DS_Store`. */
export const isHidden = (name: string): boolean => /(?:^|\/)\./.test(name)
