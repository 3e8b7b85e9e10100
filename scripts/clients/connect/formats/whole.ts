import type { FileFormat } from '#scripts/clients/connect/formats/file-format.ts'

/** A file that is this command's as a whole: its text is its one value. */
export const whole: FileFormat = {
  get: text => (text === '' ? undefined : text),
  set: (_, __, value) => value as string,
  putBack: (_, __, before) => before,
}
