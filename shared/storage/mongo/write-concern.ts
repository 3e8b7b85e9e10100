import type { Document, WriteConcern, WriteConcernSettings } from 'mongodb'

/** A replica set has at most seven members that vote. */
const votersMax = 7

/**
 * The write concern of every write: journaled, and in a replica set or sharded cluster acknowledged by a
 * majority, so that an election takes nothing back. The URI may ask for more (a tag set, more members than
 * a majority, a time-out), not for less.
 *
 * @param asked the write concern of the connection string
 * @param hello the server's answer to `hello`
 */
export function effectiveWriteConcern(
  asked: WriteConcern | undefined,
  { setName, msg, hosts, passives }: Document,
): WriteConcernSettings {
  if (!setName && msg !== 'isdbgrid') return { w: 1, j: true }
  const members = setName ? [hosts, passives].flat().filter(Boolean).length : votersMax
  const majority = Math.floor(Math.min(members, votersMax) / 2) + 1
  const { w, wtimeoutMS } = asked ?? {}
  const isStronger = typeof w === 'number' ? w >= majority && w > 1 : w !== undefined
  return {
    w: isStronger ? w : 'majority',
    j: true,
    ...(wtimeoutMS !== undefined && { wtimeoutMS }),
  } as WriteConcernSettings
}
