import type { Calibration } from '#shared/domain/embedder.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** Raised with every change of `sentences.json` or of what is computed from it. */
const calibrationVersion = 2

/** Reads the calibration of a vault space; undefined where it was not measured with the sentences of this version. */
export async function findCalibration(
  query: Query,
  space: string,
): Promise<Calibration | undefined> {
  const { rows } = await query<{ calibration: Calibration }>(
    'select calibration from embedding_spaces where space = $1 and version = $2',
    [space, calibrationVersion],
  )
  return rows[0]?.calibration
}

/** Stores a calibration, unless another process was first. @returns the one that is stored */
export async function recordCalibration(
  query: Query,
  space: string,
  calibration: Calibration,
): Promise<Calibration> {
  await query(
    `insert into embedding_spaces (space, version, calibration) values ($1, $2, $3)
     on conflict do nothing`,
    [space, calibrationVersion, JSON.stringify(calibration)],
  )
  return (await findCalibration(query, space)) ?? calibration
}
