import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'

/**
 * Writes a file that only its owner may read, whole or not at all: whoever reads it meets what was
 * there before or what is there now, after a power cut too.
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
