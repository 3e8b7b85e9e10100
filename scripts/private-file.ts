import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'

/**
 * Writes a file with mode 0600 atomically: a reader sees either the old or the new content, also after
 * a power cut.
 */
export function writePrivateFile(file: string, text: string): void {
  const next = `${file}.new`
  const descriptor = openSync(next, 'w', 0o600)
  try {
    writeSync(descriptor, text)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  renameSync(next, file)
}
