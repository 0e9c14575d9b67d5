import { describe, expect, test } from "vitest";
import { evaluate, formatNumber } from "../../examples/calculator.js";

describe("calculator", () => {
  test.each([
    ["12 * (3 + 4)", 84],
    ["2 + 3 * 4 - 5", 9],
    ["10 - 4 - 3", 3],
    ["100 / 5 / 2", 10],
    ["17 % 5 * 2", 4],
    ["-7 % 3", -1],
    ["2 ^ 3 ^ 2", 512],
    ["-2 ^ 2", -4],
    ["(-2) ^ 2", 4],
    ["2 ^ -1", 0.5],
    ["--3", 3],
    ["2 - -3", 5],
    ["+4 * -+2", -8],
    [".5 + 1.25", 1.75],
    ["  ( ( 1 ) )  ", 1],
    ["0 ^ 0", 1],
  ])("%s is %d", (expression, value) => {
    expect(evaluate(expression)).toBe(value);
  });

  test.each([
    ["1 / 0", 'Division by zero: "0" is 0.'],
    ["1 / (2 - 2)", 'Division by zero: "(2 - 2)" is 0.'],
    ["5 % 0", 'The remainder of a division by zero: "0" is 0.'],
    ["0 ^ -1", "Division by zero: 0 to the power of -1."],
    ["(-8) ^ 0.5", "-8 to the power of 0.5 is not a real number."],
    ["10 ^ 400", "The result is too large to be represented."],
    [" ", "The expression is empty; expected arithmetic such as 12 * (3 + 4)."],
    ["12 * (3 + 4", 'Expected an operator or ")" at position 12, got the end of the expression.'],
    ["12 * ", 'Expected a number or "(" at position 6, got the end of the expression.'],
    ["1 + ) 2", 'Expected a number or "(" at position 5, got ")".'],
    ["1 2", 'Expected an operator or the end at position 3, got "2".'],
    ["1.2.3", 'Expected an operator or the end at position 4, got ".".'],
    ["1,000", 'Expected an operator or the end at position 2, got ",".'],
    ["process.exit()", 'Expected a number or "(" at position 1, got "p".'],
    ["2 * 😀", 'Expected a number or "(" at position 5, got "😀".'],
    ["1".repeat(1001), "The expression has 1001 characters; at most 1000 are allowed."],
    [`${"(".repeat(101)}1${")".repeat(101)}`, "The expression is nested deeper than 100 levels."],
    [`${"-".repeat(900)}1`, "The expression is nested deeper than 100 levels."],
    [`${"2^".repeat(400)}1`, "The expression is nested deeper than 100 levels."],
  ])("%s is refused", (expression, message) => {
    expect(() => evaluate(expression)).toThrow(new Error(message));
  });

  test("a long expression that is not nested is no problem", () => {
    expect(evaluate(Array(500).fill("1").join("+"))).toBe(500);
  });

  test.each([
    [0.1 + 0.2, "0.3"],
    [-0, "0"],
    [1 / 3, "0.333333333333333"],
    [2 ** 53, "9007199254740992"],
  ])("%d is written as %s", (value, text) => {
    expect(formatNumber(value)).toBe(text);
  });
});
