import type { Codec } from '#shared/search/vectors/codec.ts'
import { createFloat32Codec } from '#shared/search/vectors/float32-codec.ts'
import { Int8Codec } from '#shared/search/vectors/int8-codec.ts'

export type Precision = 'int8' | 'float32'

const codecs = new Map<string, Codec>()

/** The codec of a vector space; one instance per dimension and precision. */
export function codecOf(dimension: number, precision: Precision): Codec {
  const name = `${precision} ${dimension}`
  const known = codecs.get(name)
  if (known) return known

  const codec = precision === 'int8' ? new Int8Codec(dimension) : createFloat32Codec(dimension)
  codecs.set(name, codec)
  return codec
}
