import type { EmbeddedMemory } from '#shared/domain/memory.ts'

/**
 * The rows that an index of a dimension can hold. A vector of another length, as an exchanged model once left
 * them, or with NaN or an infinity in it, which no order of cosines survives, costs its memory the index, not
 * the vault.
 */
export const indexableRows = (
  rows: readonly EmbeddedMemory[],
  dimension: number,
): EmbeddedMemory[] =>
  rows.filter(({ vector }) => vector.length === dimension && isFiniteVector(vector))

/**
 * The sum of finite 32-bit floats is finite. Four sums, as each addition waits for the one before: 1.1 µs of
 * CPU at 1,536 dimensions, where encoding the row takes 40 and reading it 60.
 */
function isFiniteVector(vector: Float32Array): boolean {
  const { length } = vector
  const whole = length - (length % 4)
  let a = 0
  let b = 0
  let c = 0
  let d = 0
  for (let i = 0; i < whole; i += 4) {
    a += vector[i]!
    b += vector[i + 1]!
    c += vector[i + 2]!
    d += vector[i + 3]!
  }
  for (let i = whole; i < length; i++) a += vector[i]!
  return Number.isFinite(a + b + c + d)
}
