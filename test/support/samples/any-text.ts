import fc from 'fast-check'

/**
 * Texts of any code points but surrogates. As `fc.string({ unit: 'binary' })`, whose table of all code points takes
 * each process more than a second to make.
 */
export const anyText = (lengths: { minLength?: number; maxLength?: number } = {}) =>
  fc
    .array(fc.oneof(fc.nat({ max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff })), lengths)
    .map(points => String.fromCodePoint(...points))
