import type { Calibration } from '#shared/domain/embedder.ts'
import { calibrationVersion } from '#shared/models/calibration/measure-calibration.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** What was measured of the embedding models of this service, by vault space. */
export type CalibrationStore = {
  /** Undefined for a space that was not measured with the sentences of this version. */
  find(space: string): Promise<Calibration | undefined>
  /** Stores it, unless another process was first. @returns the one that is stored */
  record(space: string, calibration: Calibration): Promise<Calibration>
}

export function createCalibrationStore({ query }: { query: Query }): CalibrationStore {
  const find = async (space: string): Promise<Calibration | undefined> => {
    const { rows } = await query<{ calibration: Calibration }>(
      'select calibration from embedding_spaces where space = $1 and version = $2',
      [space, calibrationVersion],
    )
    return rows[0]?.calibration
  }
  return {
    find,
    async record(space, calibration) {
      await query(
        `insert into embedding_spaces (space, version, calibration) values ($1, $2, $3)
         on conflict do nothing`,
        [space, calibrationVersion, JSON.stringify(calibration)],
      )
      return (await find(space)) ?? calibration
    },
  }
}
