import type { Memory } from '#shared/domain/memory.ts'

/** Pieces of a message that are told apart: one of 64 MiB has 32,768 of 512 tokens. */
const piecesMax = 2 ** 16
/** The last nine digits of an id are a hash: two messages of a vault share them once in 69 billion pairs. */
const messageDigits = 9

/** A number for a piece of a message; undefined for one that is stored whole. */
export const pieceKey = (piece: Memory['piece']): number | undefined =>
  piece &&
  Number.parseInt(piece.message.slice(-messageDigits), 16) * piecesMax +
    Math.min(piece.number, piecesMax - 2) +
    1

/** A message, as a number, and which of its pieces, from 0. */
export type MessagePiece = { message: number; number: number }

export function readPieceKey(key: number): MessagePiece {
  const rest = key % piecesMax
  return { message: (key - rest) / piecesMax, number: rest - 1 }
}
