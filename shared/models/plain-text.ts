/** A text that every model takes, to find out whether one is there. */
export const plainText = 'dimension'
