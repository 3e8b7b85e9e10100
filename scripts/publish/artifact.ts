import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

/** What a release consists of. */
export const parts = ['source', 'npm', 'python', 'image', 'chart'] as const
export type Part = (typeof parts)[number]

/** A file of a release; the sum is in hex. */
export type Artifact = { part: Part | 'record'; file: string; sha256: string }

/** What could not be built here, and why. */
export type MissingArtifact = { what: string; reason: string }

/** The files of one part. */
export type Built = { files: string[]; missing?: MissingArtifact[] }

export const sha256Of = (bytes: string | Buffer): string =>
  createHash('sha256').update(bytes).digest('hex')

/** @param path of a file that is in the folder of the release */
export const toArtifact = (part: Artifact['part'], path: string): Artifact => ({
  part,
  file: basename(path),
  sha256: sha256Of(readFileSync(path)),
})
