/** Up to here numbers tell one minor unit from the next: about 22 trillion rupees. */
const most = 2 ** 51;

/**
 * Counts an amount in minor units: `minorUnits(1499.5)` is 149950, of a currency with two decimals. Add and compare amounts as minor
 * units, since 0.1 + 0.2 is not 0.3. It throws a RangeError rather than round.
 */
export function minorUnits(amount: number, decimals = 2): number {
  const units = Number(shifted(amount, decimals));
  if (!isCount(units) || majorUnits(units, decimals) !== amount) {
    throw new RangeError(`${amount} is no amount with ${decimals} decimals`);
  }
  return units;
}

/** Writes minor units as the API has amounts: `majorUnits(149950)` is 1499.5. */
export function majorUnits(units: number, decimals = 2): number {
  if (!isCount(units)) {
    throw new RangeError(`${units} is no whole number of minor units`);
  }
  return Number(shifted(units, -decimals));
}

function isCount(units: number): boolean {
  return Number.isInteger(units) && Math.abs(units) <= most;
}

/** The number with its decimal point moved, which multiplying would round. */
function shifted(value: number, places: number): string {
  const [digits, exponent = "0"] = String(value).split("e");
  return `${digits}e${Number(exponent) + places}`;
}
