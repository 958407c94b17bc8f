/** Adds up the numbers among the codes of a nested order. Only what has digits alone is parsed. */
public class Main {
    private static long add(String[] codes, int depth) {
        if (depth > 0) {
            return add(codes, depth - 1);
        }
        long sum = 0;
        for (int round = 0; round < 5000; round++) {
            for (String code : codes) {
                sum += number(code);
            }
        }
        return sum;
    }

    private static int number(String code) {
        for (int n = 0; n < code.length(); n++) {
            if (!Character.isDigit(code.charAt(n))) {
                return 0;
            }
        }
        return Integer.parseInt(code);
    }

    public static void main(String[] words) {
        String[] codes = {"12", "A7", "B19", "311", "XL", "C4", "n/a", "D22", "70", "S"};
        System.out.println("sum " + add(codes, 300));
    }
}
