import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'

/**
 * Writes a file with mode 0600 atomically: a reader sees either the old or the new content, also after
 * a power cut. What stands at `<file>.new` is removed first: a link there is not followed, and a file of
 * another mode is not reused.
 */
export function writePrivateFile(file: string, text: string): void {
  const next = `${file}.new`
  rmSync(next, { force: true })
  try {
    const descriptor = openSync(next, 'wx', 0o600)
    try {
      writeFileSync(descriptor, text)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(next, file)
  } catch (error) {
    rmSync(next, { force: true })
    throw error
  }
}
